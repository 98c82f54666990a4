def exhaustive_search(*args, **options):
    raise RuntimeError("there is no GPU")
