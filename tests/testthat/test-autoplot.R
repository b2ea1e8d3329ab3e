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
  expect_identical(nrow(drawn(ggplot2::autoplot(by))$layout$layout), 2L)
  line <- dp_modal_regression(y ~ x, curves, box, 2, 1e-5, kind = "linear", seed = 1)
  expect_equal(utils::tail(drawn(ggplot2::autoplot(line))$data, 1)[[1]]$slope, coef(line)[["x"]])

  clusters <- dp_modal_clusters(~ x + y, points_table(), k = 4, bounds = square, epsilon = 2, delta = 1e-5, seed = 1)
  expect_equal(drawn(ggplot2::autoplot(clusters))$data[[3]]$x, unname(coef(clusters)[, "x"]))
  expect_equal(drawn(ggplot2::autoplot(clusters, columns = "x"))$data[[4]]$xintercept, unname(coef(clusters)[, "x"]))
  expect_error(ggplot2::autoplot(clusters, columns = character()), class = "dpmode_InvalidArgument")
})
