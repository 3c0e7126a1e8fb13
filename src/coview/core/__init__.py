"""The numerical core: arrays in, arrays out; it knows no estimator."""
