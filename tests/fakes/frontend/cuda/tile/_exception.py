class TileError(Exception):
    loc = None


class TileTypeError(TileError):
    pass


class TileUnsupportedFeatureError(TileError):
    pass


class TileInternalError(TileError):
    pass
