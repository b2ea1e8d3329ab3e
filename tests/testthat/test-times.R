# One column of each kind that is not a number, with two groups of days.
moments <- function() {
  set.seed(1)
  data.frame(
    day = as.Date("2024-01-01") + round(c(rnorm(1500, 60, 8), rnorm(1500, 200, 10))),
    wait = as.difftime(rnorm(3000, 20, 2), units = "mins"), y = rnorm(3000, 5)
  )
}

moment_bounds <- list(
  day = as.Date(c("2024-01-01", "2024-12-31")), wait = as.difftime(c(0, 60), units = "mins"), y = c(0, 10)
)

printed <- function(x) paste(utils::capture.output(print(x)), collapse = "\n")

# No number of seconds since 1970, in any notation.
expect_no_seconds <- function(text) expect_no_match(text, "1[.]7[0-9]*e[+]09|1,?7[0-9]{2},?[0-9]{3},?[0-9]{3}")

test_that("spans and dates have the unit and the digits that suit them", {
  expect_identical(dpmode:::span_text(c(19.2 * 3600, 90, 0.25)), c("19.2 h", "1.5 min", "250 ms"))
  expect_identical(dpmode:::span_text(c(0, 3600)), c("0 h", "1 h"))
  second <- as.double(as.POSIXct("2024-02-29 23:59:58", tz = "UTC"))
  expect_identical(dpmode:::date_text(second, 86400), "2024-03-01")
  expect_identical(dpmode:::date_text(second, 60), "2024-03-01 00:00")
  expect_identical(dpmode:::date_text(second, 1), "2024-02-29 23:59:58")
  expect_identical(dpmode:::bound_text(c(1000, 300000)), c("1,000", "300,000"))
  expect_s3_class(dpmode:::in_own_type(0, "datetime"), "POSIXct")
})

test_that("dates and durations are printed as such, wherever they stand", {
  need_python()
  table <- moments()
  fit <- dp_modes(~ day + wait, table, moment_bounds[c("day", "wait")], 2, 1e-5, seed = 1)
  expect_match(printed(fit), "2024-0[23]-[0-9]{2}( [0-9:]+)? \\([0-9.]+ [dh]\\) +[0-9.]+ min \\([0-9.]+ s\\)")
  expect_match(printed(privacy(fit)), "Bounds of day: 2024-01-01 to 2024-12-31")
  expect_match(printed(privacy(fit)), "Bounds of wait: 0 h to 1 h")
  expect_match(printed(surface(fit)), "day: from 2024-01-01 to 2024-12-31, bandwidth [0-9.]+ d")
  expect_s3_class(as.data.frame(surface(fit, columns = "day"), points = 5)$day, "POSIXct")
  expect_match(printed(private_data(table, moment_bounds, dp_budget(1, 1e-5))), "day \\[2024-01-01, 2024-12-31\\]")
  scaled <- dp_scale(~ day + y, table, moment_bounds[c("day", "y")], 2, 1e-5, seed = 1)
  expect_match(printed(scaled), "day 2024-[0-9-]+ \\([0-9.]+ [dh]\\) +[0-9.]+ d \\(")
  clusters <- dp_modal_clusters(~ day + wait, table, moment_bounds[c("day", "wait")], 2, 1e-5, k = 2, seed = 1)
  for (x in list(fit, privacy(fit), surface(fit), scaled, clusters, summary(fit), summary(scaled), summary(clusters))) {
    expect_no_seconds(printed(x))
  }
})

test_that("coef has dates and durations as such, and numbers stay a matrix", {
  need_python()
  fit <- dp_modes(~ day + y + wait, moments(), moment_bounds, 2, 1e-5, seed = 1)
  clusters <- dp_modal_clusters(~ day + wait, moments(), moment_bounds[c("day", "wait")], 2, 1e-5, k = 2, seed = 1)
  for (x in list(fit, clusters)) {
    own <- coef(x)
    expect_s3_class(own, "data.frame")
    expect_identical(names(own), as.character(x$coordinates$name))
    expect_identical(rownames(own), as.character(unique(x$estimates$mode)))
    expect_s3_class(own$day, "POSIXct")
    expect_identical(units(own$wait), "secs")
    expect_equal(own$day, as.data.frame(x)$day, tolerance = 1e-12)
    expect_equal(own$wait, as.data.frame(x)$wait, tolerance = 1e-8)
    expect_no_seconds(printed(own))
    grDevices::pdf(NULL)
    expect_invisible(plot(x))
    expect_invisible(plot(x, columns = c("day", "wait")))
    grDevices::dev.off()
    if (requireNamespace("ggplot2", quietly = TRUE)) {
      expect_s3_class(ggplot2::autoplot(x, columns = c("day", "wait")), "ggplot")
    }
  }
  # In seconds: what it says of itself.
  expect_identical(tidy(fit)$estimate[tidy(fit)$term == "day"], as.double(coef(fit)$day))
  expect_true(is.matrix(coef(dp_modes(~y, moments(), moment_bounds["y"], 2, 1e-5, seed = 1))))
})

test_that("a response of dates has its dates beside the seconds, and its spread is a span", {
  need_python()
  fit <- dp_modal_regression(day ~ y, moments(), moment_bounds[c("day", "y")], 2, 1e-5, seed = 1)
  p <- predict(fit, data.frame(y = 5))
  expect_s3_class(p$day, "POSIXct")
  expect_equal(as.double(p$day), p$estimate, tolerance = 1e-12)
  expect_true(all(p$day_lower < p$day & p$day < p$day_upper))
  expect_false(any(c("lower", "day_lower", "day_upper") %in% names(predict(fit, data.frame(y = 5), interval = "none"))))
  expect_match(printed(fit), "Spread around the nearest branch: [0-9.]+ d")
  expect_no_seconds(printed(fit))
  expect_no_seconds(printed(summary(fit)))
  line <- dp_modal_regression(wait ~ y, moments(), moment_bounds[c("wait", "y")], 2, 1e-5, seed = 1, kind = "linear")
  expect_match(printed(line), "count in seconds")
  along <- dp_modal_regression(y ~ day, moments(), moment_bounds[c("day", "y")], 2, 1e-5, seed = 1)
  expect_match(rownames(confint(along))[[1]], "^2024-[0-9-]+ [0-9:]{8}:1$")
})

test_that("axes of time say what their labels leave out", {
  times <- function(...) as.POSIXct(c(...), tz = "UTC")
  words <- dpmode:::time_words(times("2024-01-01", "2024-04-01"), c("Jan", "Apr"))
  expect_identical(words, list(labels = c("Jan", "Apr"), when = " (2024)"))
  words <- dpmode:::time_words(times("2023-10-01", "2024-01-01"), c("Oct", "Jan"))
  expect_identical(words, list(labels = c("Oct 2023", "Jan 2024"), when = ""))
  words <- dpmode:::time_words(times("2024-01-01 10:00", "2024-01-01 11:00"), c("10:00", "11:00"))
  expect_identical(words$when, " (2024-01-01, UTC)")
  expect_identical(dpmode:::time_words(times("2020-01-01", "2022-01-01"), c("2020", "2022"))$when, "")
})
