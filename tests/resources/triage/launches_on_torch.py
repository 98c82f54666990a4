"""A script as bug reports have them: data, a launch, a comparison."""

import cuda.tile as ct
import torch

WIDTH = 64
ROWS = torch.cuda.get_device_properties(0).multi_processor_count
SCALE = 2.0


def doubled(tile):
    return tile * SCALE


@ct.kernel
def scale(x, y, rows: int, T: ct.Constant[int]):
    block = ct.bid(0)
    tile = ct.load(x, index=(block, 0), shape=(1, T), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, index=(block, 0), tile=doubled(tile).astype(y.dtype))


def main():
    x = torch.randn(128, WIDTH, device="cuda", dtype=torch.float16)
    y = torch.empty_like(x, dtype=torch.float32)
    ct.launch(torch.cuda.current_stream(), (128, 1, 1), scale, (x, y, 128, WIDTH))
    ct.launch(torch.cuda.current_stream(), (64, 1, 1), scale, (x[:, 1:], y, 64, WIDTH))
    torch.testing.assert_close(y, 2 * x.float())
    print("right")


if __name__ == "__main__":
    main()
