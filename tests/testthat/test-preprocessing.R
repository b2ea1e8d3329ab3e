six_columns <- function(n = 1500) {
  number <- seq_len(n) %% 3L + 1L
  middle <- rbind(rep(0, 6), rep(c(4, 0), each = 3), rep(c(0, 4), each = 3))
  noise <- stats::qnorm(((seq_len(6L * n) * 0.618033988749895) %% 1) * 0.998 + 0.001)
  as.data.frame(middle[number, ] + matrix(noise, n)[, 1:6])
}

six_bounds <- stats::setNames(rep(list(c(-5, 9)), 6), paste0("V", 1:6))

scale_fit <- function(..., data = points_table()) {
  need_python()
  dp_scale(~ x + y, data, bounds = square, epsilon = 2, delta = 1e-5, seed = 1, ...)
}

pca_fit <- function(..., n_components = 2, radius = 0.7) {
  need_python()
  dp_pca(~ x + y, points_table(), square, 2, 1e-5, n_components = n_components, radius = radius, seed = 1, ...)
}

pipeline_fit <- function(...) {
  need_python()
  dp_pca_clusters(~., six_columns(6000), six_bounds, 2, 1e-5, n_components = 2, k = 3, seed = 1, ...)
}

test_that("location and scale are near those of the rows", {
  fit <- scale_fit()
  expect_s3_class(fit, c("dp_scale", "dp_result"), exact = TRUE)
  table <- points_table()
  iqr <- vapply(table, function(x) diff(stats::quantile(x, c(0.25, 0.75))) / 1.349, 0)
  expect_equal(unname(coef(fit)[, "scale"]), unname(iqr), tolerance = 0.1)
  t <- tidy(fit)
  expect_identical(t$estimate, as.vector(t(coef(fit))))
  expect_equal(t$std.error, sqrt(t$std.error.privacy^2 + t$std.error.sampling^2), tolerance = 1e-12)
  expect_identical(glance(fit)$n.releases, 1L)
  expect_identical(rownames(coef(dp_scale(~ log(x), data.frame(x = exp(points_table()$x)),
    list(x = exp(c(-8, 8))), 2, 1e-5, seed = 1
  ))), "log(x)")
})

test_that("scaled rows and scores go back to where they came from", {
  new <- data.frame(x = c(1, NA, -2), y = c(2, 0, 0.5))
  for (fit in list(scale_fit(), pca_fit())) {
    there <- predict(fit, new)
    expect_identical(dim(there), dim(new))
    expect_equal(predict(fit, there, type = "original")[c(1, 3), ], new[c(1, 3), ], tolerance = 1e-9)
    expect_error(predict(fit), class = "dpmode_NotReleased")
  }
  expect_equal(predict(scale_fit(), new)$x[[1]], (1 - coef(scale_fit())[1, 1]) / coef(scale_fit())[1, 2])
})

test_that("components are orthonormal, and their parameters are kept", {
  fit <- pca_fit()
  expect_equal(tcrossprod(coef(fit)), diag(2), tolerance = 1e-9, ignore_attr = TRUE)
  expect_identical(names(as.data.frame(fit)), c("component", "x", "y"))
  expect_identical(glance(fit)$radius, 0.7)
  expect_identical(privacy(fit)$releases$mechanism, c("mean (simulated Gaussian)", "second moments (simulated Gaussian)"))
  public <- pca_fit(centre = c(x = 0, y = 1), scale = list(x = 4, y = 5), whiten = FALSE)
  expect_identical(public$location, c(0, 1))
  expect_identical(public$scale, c(4, 5))
  expect_false(public$whiten)
  expect_identical(nrow(privacy(public)$releases), 1L)
  from_scaler <- pca_fit(centre = scale_fit(), scale = scale_fit())
  expect_identical(from_scaler$location, unname(coef(scale_fit())[, "location"]))
  expect_identical(from_scaler$scale, unname(coef(scale_fit())[, "scale"]))
  expect_gt(pca_fit(radius = "private")$radius, 0)
})

test_that("three groups in six columns are three clusters", {
  fit <- pipeline_fit()
  expect_s3_class(fit, c("dp_pca_clusters", "dp_result"), exact = TRUE)
  middle <- rbind(rep(0, 6), rep(c(4, 0), each = 3), rep(c(0, 4), each = 3))
  labels <- predict(fit, stats::setNames(as.data.frame(middle), names(six_bounds)))
  expect_setequal(labels, 1:3)
  expect_equal(coef(fit)[labels, ], middle, tolerance = 0.15, ignore_attr = TRUE)
  expect_identical(tidy(fit)$estimate, as.vector(t(coef(fit))))
  expect_s3_class(fit$components, "dp_pca")
  expect_s3_class(fit$clusters, "dp_modal_clusters")
  expect_identical(augment(fit, six_columns(9))$.component, predict(fit, six_columns(9)))
  scores <- predict(fit, six_columns(9), type = "scores")
  expect_identical(predict(fit$clusters, scores), predict(fit, six_columns(9)))
  expect_equal(sum(unlist(fit$shares)), 1)
  expect_identical(rownames(confint(fit$clusters))[1:2], c("1:pc1", "1:pc2"))
  expect_warning(pipeline_fit(reach = 2), "at the limit of the scores")
  given <- pipeline_fit(shares = c(mean = 1, radius = 1, moments = 3, clusters = 5), reach = 4, centre = "private")
  expect_identical(unlist(given$shares), c(mean = 0.1, radius = 0.1, moments = 0.3, clusters = 0.5))
})

test_that("a study pays for every step", {
  need_python()
  study <- private_data(points_table(), bounds = square, budget = dp_budget(2, 1e-5))
  dp_scale(~., study, epsilon = 0.5)
  dp_pca(~., study, epsilon = 0.5, n_components = 1, radius = 0.5, label = "axes")
  expect_identical(ledger(study)$label, c("scale of x, y", "axes: mean", "axes: moments"))
  expect_error(dp_pca_clusters(~., study, epsilon = 1.9, n_components = 1), class = "dpmode_BudgetExceeded")
  expect_identical(nrow(ledger(study)), 3L)
})

test_that("results print, draw, and are saved", {
  fits <- list(scale_fit(), pca_fit(), pipeline_fit())
  for (fit in fits) {
    expect_output(print(fit), "NOT PRIVATE")
    expect_output(print(summary(fit)), "NOT PRIVATE")
    expect_output(print(privacy(fit)), "Bounds of")
    for (ending in c(".json", ".json.gz")) {
      file <- dp_write(fit, withr_file(ending))
      expect_identical(coef(dp_read(file)), coef(fit))
    }
  }
  file <- withr_file(".pdf")
  grDevices::pdf(file)
  on.exit(grDevices::dev.off(), add = TRUE)
  expect_invisible(plot(fits[[3]]))
  expect_s3_class(surface(fits[[3]]), "dp_surface")
})

test_that("what cannot be answered is refused", {
  need_python()
  rows <- points_table()
  expect_error(dp_pca(~., rows, square, 1, 1e-5, n_components = 1), "radius", class = "dpmode_MissingBounds")
  expect_error(dp_pca(~., rows, square, 1, 1e-5, radius = 1), "n_components", class = "dpmode_InvalidArgument")
  expect_error(dp_pca(~ log(x), rows, square, 1, 1e-5, n_components = 1, radius = 1), class = "dpmode_FormulaError")
  expect_error(dp_scale(~., rows, square), "epsilon", class = "dpmode_InvalidBudget")
  expect_error(dp_scale(~., fit_of("plane"), epsilon = 1), "no rows", class = "dpmode_UnsupportedSource")
  expect_error(scale_fit(subset = x > 0), "subset", class = "dpmode_InvalidArgument")
  expect_error(dp_modes(~x, pca_fit()), class = "dpmode_NoSurface")
  expect_error(pca_fit(centre = c(x = 1)), "y", class = "dpmode_InvalidArgument")
  for (fit in list(scale_fit(), pca_fit(), pipeline_fit())) {
    expect_error(tidy(fit, conf.int = TRUE), "no confint", class = "dpmode_NotReleased")
    for (f in list(residuals, fitted, logLik, confint)) expect_error(f(fit), class = "dpmode_NotReleased")
  }
})

test_that("a missing value is not told by a warning", {
  rows <- points_table()
  rows$x[[7]] <- NA
  expect_silent(scale_fit(data = rows))
  expect_silent(dp_modes(~ x + y, rows, square, 2, 1e-5, seed = 1))
  expect_silent(dp_pca(~ x + y, rows, square, 2, 1e-5, n_components = 1, radius = 0.5, seed = 1))
  fit <- scale_fit()
  expect_silent(scaled <- predict(fit, data.frame(x = NA_real_, y = 1)))
  expect_identical(is.na(scaled), cbind(x = TRUE, y = FALSE))
})

test_that("every argument of the Python models is reached", {
  need_python()
  python <- dpmode:::call_python("signatures")
  reached <- list(
    PrivateScaler = c(names(formals(dp_scale)), "columns", "log"),
    PrivatePCA = c(names(formals(dp_pca)), "columns"),
    PrivateClusteringPipeline = c(names(formals(dp_pca_clusters)), "columns", "n_clusters")
  )
  for (name in names(reached)) {
    expect_gt(length(python[[name]]), 2L)
    expect_length(setdiff(unlist(python[[name]]), reached[[name]]), 0)
    expect_length(setdiff(unlist(python[[paste0(name, ".fit")]]), reached[[name]]), 0)
  }
})
