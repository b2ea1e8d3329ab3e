test_that("four Gaussians have four modes near their centres", {
  fit <- fit_of("plane")
  at <- coef(fit)
  expect_identical(dim(at), c(4L, 2L))
  expect_identical(colnames(at), c("x", "y"))
  expect_true(all(abs(abs(at) - 3) < 0.6))
})

test_that("a logarithm in the formula is the model's log", {
  fit <- fit_of("log")
  expect_identical(colnames(coef(fit)), "log(wage)")
  expect_equal(as.data.frame(fit)$wage, unname(exp(coef(fit)[, 1])), tolerance = 1e-14)
})

test_that("~ . takes all columns with bounds", {
  fit <- fit_of("plane")
  all <- dp_modes(~., points_table(), bounds = square, epsilon = 2, delta = 1e-5, seed = 1)
  expect_identical(coef(all), coef(fit))
})

test_that("tibbles, data.tables, matrices and files give the same numbers", {
  fit <- fit_of("plane")
  table <- points_table()
  again <- function(data) coef(dp_modes(~ x + y, data, bounds = square, epsilon = 2, delta = 1e-5, seed = 1))
  expect_identical(again(tibble::as_tibble(table)), coef(fit))
  expect_identical(again(data.table::as.data.table(table)), coef(fit))
  expect_identical(again(as.matrix(table)), coef(fit))
  file <- withr_file(".csv")
  utils::write.csv(format(table, digits = 17), file, row.names = FALSE, quote = FALSE)
  expect_equal(again(file), coef(fit), tolerance = 1e-6)
})

test_that("there is no default epsilon, and no bounds from the data", {
  need_python()
  expect_error(dp_modes(~x, points_table(), bounds = square["x"], delta = 1e-5), "epsilon", class = "dpmode_InvalidBudget")
  expect_error(dp_modes(~x, points_table(), epsilon = 1, delta = 1e-5), class = "dpmode_MissingBounds")
  expect_error(dp_modes(~z, points_table(), bounds = square, epsilon = 1, delta = 1e-5), class = "dpmode_UnknownColumn")
})

test_that("errors carry every Python class, and can be caught by the family", {
  need_python()
  found <- classes_of(dp_budget(-1, 1e-6))
  expect_identical(
    found[c(1, 2, 3)], c("dpmode_InvalidBudget", "dpmode_InvalidArgument", "dpmode_PydpmodeError")
  )
  expect_true(all(c("dpmode_error", "error", "condition") %in% found))
})

test_that("warnings are classed, and stored on the result", {
  need_python()
  expect_warning(
    fit <- dp_modes(~x, points_table(), bounds = square["x"], epsilon = 2, delta = 0.01, seed = 1),
    class = "dpmode_WeakDelta"
  )
  expect_match(fit$warnings, "1/n")
})

test_that("subset, weights and na.action are refused with the reason, before they are evaluated", {
  need_python()
  again <- function(...) dp_modes(~x, points_table(), bounds = square["x"], epsilon = 1, delta = 1e-5, ...)
  expect_error(again(subset = no_such_thing > 1), "number of rows", class = "dpmode_InvalidArgument")
  expect_error(again(weights = no_such_thing), "max_weight", class = "dpmode_InvalidArgument")
  expect_error(again(na.action = na.omit), "counts nothing", class = "dpmode_InvalidArgument")
  expect_error(again(bandwith = 1), "unknown argument: bandwith", class = "dpmode_InvalidArgument")
  expect_error(again(device = "cuda"), "give private_data(..., device = ) as data", fixed = TRUE, class = "dpmode_InvalidArgument")
  words <- data.frame(x = rep(c("a", "b"), 50))
  expect_error(dp_modes(~x, words, list(x = c(0, 1)), 1, 1e-5), "character", class = "dpmode_NonNumericColumn")
})

test_that("formulas that would need the data are refused", {
  need_python()
  again <- function(f) dp_modes(f, points_table(), bounds = square, epsilon = 1, delta = 1e-5)
  for (f in list(~ x:y, ~ I(x^2), ~ log(x + y), ~ x - y, y ~ x, ~ scale(x), ~1)) {
    expect_error(again(f), class = "dpmode_FormulaError")
  }
  expect_error(again("x"), class = "dpmode_FormulaError")
})

test_that("a missing value counts nothing, and the number of rows stays", {
  need_python()
  table <- points_table()
  table$x[1:10] <- NA
  fit <- dp_modes(~x, table, bounds = square["x"], epsilon = 2, delta = 1e-5, seed = 1)
  expect_identical(privacy(fit)$n_units, 1500L)
  expect_lt(nobs(fit), 1500)
})

test_that("dates are columns like others, with dates as bounds and durations as bandwidths", {
  need_python()
  set.seed(1)
  day <- as.Date("2020-01-01") + round(c(rnorm(800, 100, 20), rnorm(800, 400, 20)))
  fit <- dp_modes(~day, data.frame(day = day),
    bounds = list(day = as.Date(c("2019-06-01", "2021-12-31"))), epsilon = 2, delta = 1e-5, seed = 1,
    bandwidth = as.difftime(20, units = "days")
  )
  found <- as.data.frame(fit)
  expect_s3_class(found$day, "POSIXct")
  expect_setequal(format(found$day, "%Y-%m"), c("2020-04", "2021-02"))
  expect_match(paste(format(fit), collapse = "\n"), "2020-04")
})

test_that("DP-GRAMS is reached, with its options", {
  need_python()
  fit <- dp_modes(~ x + y, points_table(), bounds = square, epsilon = 4, delta = 1e-5, seed = 1,
    mechanism = "grams", grams = grams_options(k = 8, T = 6)
  )
  expect_identical(fit$diagnostics$rounds, 6L)
  expect_identical(fit$diagnostics$ascents, 8L)
  expect_error(surface(fit), class = "dpmode_NoSurface")
  expect_error(
    dp_modes(~x, points_table(), bounds = square["x"], epsilon = 1, delta = 1e-5, mechanism = "grams", grams = list(k = 2)),
    "grams_options", class = "dpmode_InvalidArgument"
  )
})

test_that("a preview reads and charges nothing", {
  need_python()
  study <- private_data(points_table(), bounds = square, budget = dp_budget(1, 1e-5))
  plan <- preview_modes(~ x + y, study, epsilon = 0.5, spread = c(x = 1, y = 1), n = 5000)
  expect_identical(nrow(ledger(study)), 0L)
  expect_identical(plan$n, 5000L)
  expect_true(plan$fits)
  expect_output(print(plan), "nothing read")
  expect_true(is.data.frame(as.data.frame(plan)))
})

test_that("every argument of the Python models is reached from R", {
  need_python()
  python <- dpmode:::call_python("signatures")
  has <- function(fun) names(formals(fun))
  expect_length(setdiff(unlist(python$DensityModes), c(has(dp_modes), "columns", "log")), 0)
  expect_length(setdiff(unlist(python[["DensityModes.fit"]]), has(dp_modes)), 0)
  expect_length(setdiff(unlist(python[["DensityModes.preview"]]), has(preview_modes)), 0)
  expect_length(setdiff(unlist(python$PrivateData), c(has(private_data), "columns")), 0)
  expect_length(setdiff(unlist(python$GramsOptions), has(grams_options)), 0)
})
