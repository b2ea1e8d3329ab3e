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

test_that("a branch that is not certified everywhere is explained in print", {
  line <- "Where a branch is not certified noise alone may explain it; plot() has it dashed there."
  fit <- curve_fit()
  fit$branches$certified <- TRUE
  expect_false(line %in% format(fit))
  fit$branches$certified[fit$branches$branch == 2L][-1L] <- FALSE
  expect_true(line %in% format(fit))
  expect_match(format(fit), "in part", all = FALSE)
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
  expect_error(surface(fit), "give group, one of one, two", class = "dpmode_NoSurface")
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

# Two levels whose lines cross.
crossing <- function(levels) {
  set.seed(2)
  table <- data.frame(dose = runif(2000, 0, 10), g = rep(levels, length.out = 2000))
  table$reply <- ifelse(table$g == levels[[1]], 1 + table$dose / 2, 6 - 0.3 * table$dose) + rnorm(2000, sd = 0.5)
  table
}

crossing_fit <- function(levels = c("north", "south"), ...) {
  need_python()
  dp_modal_regression(reply ~ dose, crossing(levels), list(dose = c(0, 10), reply = c(-2, 9)), 2, 1e-5,
    by = "g", levels = levels, seed = 1, ...
  )
}

test_that("each level has its surface, and the picture draws each", {
  fit <- crossing_fit()
  north <- predict(surface(fit, group = "north"), data.frame(dose = 9, reply = c(5.5, 3.3)))$density
  south <- predict(surface(fit, group = "south"), data.frame(dose = 9, reply = c(5.5, 3.3)))$density
  expect_true(north[1] > 5 * north[2] && south[2] > 5 * south[1])
  expect_error(surface(fit, group = "west"), "one of north, south", class = "dpmode_NoSurface")
  expect_error(surface(curve_fit(), group = "north"), "by", class = "dpmode_InvalidArgument")
  north_grid <- dpmode:::group_grid(fit, "north")
  south_grid <- dpmode:::group_grid(fit, "south")
  expect_identical(dim(north_grid$density), c(161L, 161L))
  expect_false(identical(north_grid$density, south_grid$density))
})

test_that("levels that are not texts are found again in tables and pictures", {
  for (levels in list(c(TRUE, FALSE), c(1, 2))) {
    fit <- crossing_fit(levels)
    expect_identical(dpmode:::groups_of(fit), as.character(levels))
    table <- dpmode:::branch_table(fit)
    expect_false(anyNA(table$group))
    expect_setequal(as.character(table$group), as.character(levels))
    expect_identical(surface(fit, group = levels[[2]])$kind, "surface")
    expect_match(paste(format(fit), collapse = " "), paste("for", levels[[2]]))
  }
})

test_that("the picture of a line has the line and the band that predict() tells", {
  fit <- crossing_fit(kind = "linear")
  line <- dpmode:::line_table(fit, "south", c(0, 10), 0.9)
  p <- predict(fit, data.frame(dose = line$x[c(1, 40)], g = "south"), level = 0.9)
  expect_equal(line$estimate[c(1, 40)], p$estimate, tolerance = 1e-10)
  expect_equal(line$lower[c(1, 40)], p$lower, tolerance = 1e-10)
  expect_equal(line$upper[c(1, 40)], p$upper, tolerance = 1e-10)
  file <- withr_file(".pdf")
  grDevices::pdf(file)
  on.exit(grDevices::dev.off(), add = TRUE)
  grDevices::dev.control("enable")
  for (drawn in list(fit, crossing_fit())) {
    expect_invisible(plot(drawn))
    calls <- vapply(grDevices::recordPlot()[[1L]], function(item) as.character(item[[2L]][[1L]]$name), "")
    # In each of two panels the density, and over it a band.
    expect_identical(sum(calls == "C_filledcontour"), 2L)
    expect_gte(sum(calls == "C_polygon"), 2L)
  }
  expect_match(dpmode:::key_text(fit, 0.9), "Modal line with 90% band")
})

test_that("print says which branches are told from noise, as the summary does", {
  need_python()
  wages <- dp_modal_regression(log(wage) ~ age, dp_data("wages"), list(age = c(15, 90), wage = c(1000, 300000)), 1, 1e-6,
    resolution = c(age = 1), seed = 3
  )
  shares <- dpmode:::branch_shares(wages)
  part <- tapply(wages$branches$certified, wages$branches$branch, mean)
  expect_identical(shares$certified, ifelse(part > 0.5, "yes", ifelse(part > 0, "in part", "no"))[shares$branch] |> as.vector())
  expect_true(all(c("yes", "no") %in% shares$certified))
  expect_identical(sum(shares$certified == "yes"), glance(wages)$certified.branches)
  expect_output(print(wages), " branch +mass +certified\n +1 .* yes")
  by <- crossing_fit()
  expect_identical(dpmode:::branch_shares(by)$certified, c("yes", "yes"))
})

nearly_empty <- function(...) {
  need_python()
  table <- curves()
  table$g <- rep(c("one", "two"), length.out = nrow(table))
  suppressWarnings(dp_modal_regression(
    y ~ x, table, curve_bounds, 2, 1e-5, by = "g", levels = c("one", "two", "none"), seed = 1, ...
  ))
}

test_that("a level without records is blank, and does not set the scale of colours", {
  fit <- nearly_empty()
  grids <- lapply(level_names(fit), function(level) group_grid(fit, level))
  expect_identical(vapply(grids, is_blank, NA), c(FALSE, FALSE, TRUE))
  expect_true(all(is.nan(grids[[3L]]$density)))
  top <- top_of_scale(grids)
  expect_identical(top, max(grids[[1L]]$density, grids[[2L]]$density, na.rm = TRUE))
  # Beside the noise of the empty level the densities of the others would not be seen.
  expect_gt(max(predict(surface(fit, group = "none"), data.frame(x = seq(0, 1, 0.05), y = 1))$noise.sd), top)
  expect_null(drawn_grid(grids[[3L]], top))
  expect_identical(dim(drawn_grid(grids[[1L]], top)$density), c(161L, 161L))
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  expect_identical(plot(fit), fit)
  grDevices::dev.off()
  # A level of much noise, little of which stands out, does not set the scale either.
  rough <- list(known = TRUE, density = matrix(c(40, NaN), 1L), noise_sd = 10)
  expect_identical(top_of_scale(c(grids, list(rough))), top)
  expect_identical(max(drawn_grid(rough, top)$density, na.rm = TRUE), top)
  expect_identical(top_of_scale(grids[3L]), 0)
})

test_that("what is not known is not printed as NaN", {
  fit <- nearly_empty()
  expect_match(paste(format(fit), collapse = " "), "nothing stands out for none")
  expect_false(any(grepl("NaN", format(fit))))
  line <- nearly_empty(kind = "linear")
  expect_false(any(grepl("NaN", format(line))))
  expect_match(paste(format(line), collapse = " "), "No line stands out for none")
  expect_false(any(grepl("False-branch", capture.output(print(summary(line))))))
  expect_identical(nrow(finite_line(line_table(line, "none", c(0, 1), 0.95))), 0L)
  expect_gt(nrow(finite_line(line_table(line, "one", c(0, 1), 0.95))), 0L)
})

test_that("a preview with groups is of one level", {
  need_python()
  table <- curves()
  table$g <- "one"
  study <- private_data(table, curve_bounds, dp_budget(1, 1e-5))
  text <- paste(format(preview_regression(y ~ x, study, epsilon = 0.5, by = "g", levels = c("one", "two"))), collapse = "\n")
  expect_match(text, "equal shares of 2 levels of g")
  expect_match(text, "its level's records")
})
