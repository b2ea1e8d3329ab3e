curve_bounds <- list(x = c(0, 1), y = c(-1, 2.5))

curves <- function(n = 1500) dp_data("sinusoid", n = n, seed = 1)

curve_fit <- function(...) {
  need_python()
  dp_modal_regression(y ~ x, curves(), bounds = curve_bounds, epsilon = 2, delta = 1e-5, seed = 1, ...)
}

test_that("two curves are two branches, and are predicted anywhere", {
  fit <- curve_fit()
  expect_s3_class(fit, c("dp_modal_regression", "dp_result"), exact = TRUE)
  p <- predict(fit, data.frame(x = c(0.5, NA, 3)))
  expect_identical(p$row, c(1L, 1L, 2L, 3L))
  expect_equal(sort(p$estimate[1:2]), c(-0.5, 1), tolerance = 0.25)
  expect_identical(p$status[3:4], c("missing", "outside the box"))
  narrow <- predict(fit, data.frame(x = 0.5), level = 0.5)
  expect_true(all(narrow$upper - narrow$lower < (p$upper - p$lower)[1:2]))
  expect_false("lower" %in% names(predict(fit, data.frame(x = 0.5), interval = "none")))
})

test_that("prediction regions and the mean curve are read from the same release", {
  fit <- curve_fit()
  region <- predict(fit, data.frame(x = 0.5), interval = "prediction")
  expect_identical(nrow(region), 2L)
  expect_true(all(region$lower < region$upper))
  mean <- predict(fit, data.frame(x = 0.5), type = "mean")
  expect_equal(mean$mean, 0.25, tolerance = 0.6)
})

test_that("coef, confint, tidy, glance and augment agree", {
  fit <- curve_fit()
  b <- coef(fit)
  ci <- confint(fit)
  expect_identical(unname(ci[, 1]), b$lower)
  t <- tidy(fit, conf.int = TRUE)
  expect_identical(t$estimate, b$estimate)
  expect_identical(t$conf.high, b$upper)
  expect_identical(nrow(confint(fit, 1)), sum(b$branch == 1))
  g <- glance(fit)
  expect_identical(g$n.branches, 2L)
  a <- augment(fit, data.frame(x = c(0.2, 0.8), tag = c("u", "v")))
  expect_identical(a$tag, c("u", "u", "v", "v"))
  expect_identical(as.data.frame(fit), b)
})

test_that("groups are declared, and predicted by group", {
  need_python()
  table <- curves()
  table$g <- factor(rep(c("one", "two"), length.out = nrow(table)))
  fit <- dp_modal_regression(y ~ x, table, curve_bounds, 2, 1e-5, by = "g", levels = c("one", "two"), seed = 1)
  p <- predict(fit, data.frame(x = 0.5, g = c("one", "two")))
  expect_setequal(p$row, c(1, 2))
  expect_warning(
    q <- predict(fit, data.frame(x = 0.5, g = "three")), class = "dpmode_UnknownLevel"
  )
  expect_identical(q$status, "unknown level")
  expect_error(surface(fit), class = "dpmode_NoSurface")
  expect_error(
    dp_modal_regression(y ~ x, table, curve_bounds, 2, 1e-5, by = "g"), "levels", class = "dpmode_InvalidArgument"
  )
})

test_that("what the formula cannot be is refused, and so are rows", {
  fit <- curve_fit()
  again <- function(f) dp_modal_regression(f, curves(), curve_bounds, 2, 1e-5)
  expect_error(again(~x), class = "dpmode_FormulaError")
  expect_error(again(y ~ scale(x)), class = "dpmode_InvalidArgument")
  expect_error(predict(fit), class = "dpmode_NotReleased")
  for (f in list(residuals, fitted, logLik)) expect_error(f(fit), class = "dpmode_NotReleased")
  expect_error(curve_fit(subset = x > 1), class = "dpmode_InvalidArgument")
})

test_that("results print, draw and are saved", {
  fit <- curve_fit()
  expect_output(print(fit), "Modal regression, simulated noise \\(NOT PRIVATE\\), of y ~ x")
  expect_output(print(summary(fit)), "Predictors")
  file <- withr_file(".pdf")
  grDevices::pdf(file)
  on.exit(grDevices::dev.off(), add = TRUE)
  expect_invisible(plot(fit))
  other <- dp_write(fit, withr_file(".json"))
  expect_identical(coef(dp_read(other)), coef(fit))
})

test_that("every argument of the Python model is reached", {
  need_python()
  python <- dpmode:::call_python("signatures")
  has <- function(fun) names(formals(fun))
  expect_length(setdiff(unlist(python[["ModalRegression.from_formula"]]), has(dp_modal_regression)), 0)
  expect_length(setdiff(unlist(python[["ModalRegression.fit"]]), has(dp_modal_regression)), 0)
  expect_length(setdiff(unlist(python[["ModalRegression.preview"]]), has(preview_regression)), 0)
})

test_that("a preview of a regression charges nothing", {
  need_python()
  study <- private_data(curves(), curve_bounds, dp_budget(1, 1e-5))
  plan <- preview_regression(y ~ x, study, epsilon = 0.5)
  expect_true(plan$fits)
  expect_identical(nrow(ledger(study)), 0L)
  expect_true(all(c("share", "certified", "seen") %in% names(as.data.frame(plan))))
  expect_output(print(plan), "a branch that holds this share")
  line <- preview_regression(y ~ x, study, epsilon = 0.5, kind = "linear")
  expect_null(line$branches)
  expect_true("slope x s.e. privacy" %in% names(as.data.frame(line)))
})

test_that("a line has coefficients, as in other regressions", {
  need_python()
  set.seed(1)
  table <- data.frame(x = runif(2000))
  table$y <- 1 + 2 * table$x + rnorm(2000, sd = 0.2)
  fit <- dp_modal_regression(y ~ x, table, list(x = c(0, 1), y = c(0, 4)), 2, 1e-5, kind = "linear", seed = 1)
  expect_identical(names(coef(fit)), c("Intercept", "x"))
  expect_equal(unname(coef(fit)), c(1, 2), tolerance = 0.15)
  expect_identical(dim(confint(fit)), c(2L, 2L))
  expect_identical(rownames(confint(fit, "x")), "x")
  t <- tidy(fit, conf.int = TRUE)
  expect_equal(sqrt(diag(vcov(fit))), setNames(t$std.error, c("Intercept", "x")), tolerance = 1e-10)
  expect_identical(t$conf.low, unname(confint(fit)[, 1]))
  expect_output(print(fit), "Std. Error")
  file <- withr_file(".pdf")
  grDevices::pdf(file)
  on.exit(grDevices::dev.off(), add = TRUE)
  expect_invisible(plot(fit))
})

test_that("branches have no common covariance", {
  expect_error(vcov(curve_fit()), class = "dpmode_InvalidArgument")
})

test_that("the paper's DP-PMS is reached, for public predictors", {
  need_python()
  table <- curves()
  fit <- dp_modal_regression(y ~ x, table, curve_bounds, 4, 1e-5,
    seed = 1, mechanism = "grams", public_predictors = table$x, grams = grams_options(T = 6)
  )
  expect_equal(sort(predict(fit, data.frame(x = 0.5))$estimate), c(-0.5, 1), tolerance = 0.25)
  expect_error(surface(fit), class = "dpmode_NoSurface")
  expect_output(print(fit), "certified\\.")
})
