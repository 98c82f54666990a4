"""What runs a reader's script without a GPU: recorded launches, and stand-ins for what is not installed.

Loaded by path, under a private name, into the process of `look_worker`: nothing here imports more than the
standard library, or anything else of the lab.

recorder            launches and searches, as plain data; which kernels there are
anything            answers to whatever a script asks
dtypes, methods, tensors, factories     arrays that know shape, strides and dtype, and what makes them
torch_stand_in, numpy_stand_in, missing, pytest_stand_in    modules made of these
"""
