class Version(str):
    def as_string(self):
        return str(self)


_SUPPORTED_VERSIONS = [Version("13.1"), Version("13.2")]
