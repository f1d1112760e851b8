"""From what was read to what is settled: bounded, overlapping stages and the position behind them."""
