drawn <- function(picture) {
  expect_s3_class(picture, "ggplot")
  expect_silent(built <- ggplot2::ggplot_build(picture))
  built
}

test_that("regressions and clusters are drawn with ggplot2", {
  need_python()
  skip_if_not_installed("ggplot2")
  curves <- dp_data("sinusoid", n = 2400, seed = 1)
  box <- list(x = c(0, 1), y = c(-1, 2.5))
  fit <- dp_modal_regression(y ~ x, curves, box, epsilon = 2, delta = 1e-5, seed = 1)
  built <- drawn(ggplot2::autoplot(fit))
  lines <- built$data[[4]]
  expect_setequal(lines$y, fit$branches$estimate)
  expect_identical(unique(lines$linetype[lines$linetype != "dashed"]), "solid")

  curves$site <- rep(c("north", "south"), length.out = nrow(curves))
  by <- dp_modal_regression(y ~ x, curves, box, 2, 1e-5, by = "site", levels = c("north", "south"), seed = 1)
  built <- drawn(ggplot2::autoplot(by))
  expect_identical(nrow(built$layout$layout), 2L)
  # A density in each panel: as many cells, and not the same.
  fill <- split(built$data[[1]]$fill, built$data[[1]]$PANEL)
  expect_identical(lengths(fill, use.names = FALSE), c(161L, 161L) * 161L)
  expect_false(identical(fill[[1]], fill[[2]]))
  empty <- suppressWarnings(dp_modal_regression(
    y ~ x, curves, box, 2, 1e-5, by = "site", levels = c("north", "west"), seed = 1
  ))
  built <- drawn(ggplot2::autoplot(empty))
  fill <- split(built$data[[1]]$fill, built$data[[1]]$PANEL)
  expect_true(length(unique(fill[[1]])) > 100L)
  expect_identical(unique(fill[[2]]), "transparent")
  line <- dp_modal_regression(y ~ x, curves, box, 2, 1e-5, kind = "linear", seed = 1)
  ends <- utils::tail(drawn(ggplot2::autoplot(line))$data, 1)[[1]]
  expect_equal(diff(range(ends$y)) / diff(range(ends$x)), abs(coef(line)[["x"]]))

  clusters <- dp_modal_clusters(~ x + y, points_table(), k = 4, bounds = square, epsilon = 2, delta = 1e-5, seed = 1)
  expect_equal(drawn(ggplot2::autoplot(clusters))$data[[3]]$x, unname(coef(clusters)[, "x"]))
  expect_equal(drawn(ggplot2::autoplot(clusters, columns = "x"))$data[[4]]$xintercept, unname(coef(clusters)[, "x"]))
  expect_error(ggplot2::autoplot(clusters, columns = character()), class = "dpmode_InvalidArgument")
})
