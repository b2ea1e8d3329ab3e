# What a call from R costs beside the same call in Python: 1,000,000 x 2 doubles, both in one process.
#
#   RETICULATE_PYTHON=.venv/bin/python Rscript benchmarks/r_overhead.R [--quick]
#
# Writes the row of reticulate in benchmarks/results/r_overhead.csv; rpy2_overhead.py writes those of rpy2. R and Python take turns on the same rows; each pair gives one difference.

suppressPackageStartupMessages({
  library(reticulate)
  library(dpmode)
})

quick <- "--quick" %in% commandArgs(trailingOnly = TRUE)
rows <- if (quick) 1e5 else 1e6
pairs <- if (quick) 3L else 15L
seed <- 20261130

table <- as.data.frame(lapply(dp_data("four_gaussians", n = rows, seed = seed), as.double))
bounds <- list(x = c(-8, 8), y = c(-8, 8))

in_r <- function() {
  fit <- dp_modes(~ x + y, table, bounds = bounds, epsilon = 1, delta = 1e-8)
  stopifnot(nrow(coef(fit)) > 0L)
}

py_run_string(sprintf("
import time
from pydpmode import DensityModes, datasets
table = datasets.four_gaussians(%d, seed=%d)[0]
def in_python():
    start = time.perf_counter()
    res = DensityModes(table, ['x', 'y'], bounds={'x': (-8, 8), 'y': (-8, 8)}).fit(epsilon=1.0, delta=1e-8)
    assert res.n_modes > 0
    return time.perf_counter() - start
", as.integer(rows), as.integer(seed)))
in_python <- function() py$in_python()

in_r()
in_python()
seconds <- t(vapply(seq_len(pairs), function(i) {
  Sys.sleep(0.3)
  r <- system.time(in_r())[["elapsed"]]
  Sys.sleep(0.3)
  c(r = r, python = in_python())
}, c(r = 0, python = 0)))

extra <- seconds[, "r"] - seconds[, "python"]
result <- data.frame(
  rows = rows, pairs = pairs, bridge = "reticulate", python_seconds = median(seconds[, "python"]),
  r_seconds = median(seconds[, "r"]), extra_seconds = mean(extra), extra_se = sd(extra) / sqrt(pairs)
)
print(result, digits = 3)
if (!quick) {
  result[4:7] <- signif(result[4:7], 3)
  # Those of rpy2 are measured by rpy2_overhead.py.
  others <- utils::read.csv("benchmarks/results/r_overhead.csv")
  result <- rbind(result, others[others$bridge != "reticulate", ])
  utils::write.csv(result, "benchmarks/results/r_overhead.csv", row.names = FALSE, quote = FALSE)
}
