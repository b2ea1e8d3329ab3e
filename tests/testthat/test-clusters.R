cluster_fit <- function(..., k = 4) {
  need_python()
  dp_modal_clusters(~ x + y, points_table(), k = k, bounds = square, epsilon = 2, delta = 1e-5, seed = 1, ...)
}

test_that("four Gaussians are four clusters of about a quarter each", {
  fit <- cluster_fit()
  expect_s3_class(fit, c("dp_modal_clusters", "dp_result"), exact = TRUE)
  expect_true(all(abs(abs(coef(fit)) - 3) < 0.4))
  expect_equal(unique(tidy(fit)$proportion), rep(0.25, 4), tolerance = 0.2)
  expect_identical(glance(fit)$n.clusters, 4L)
  expect_identical(dp_modal_clusters(~., points_table(), k = 4, bounds = square, epsilon = 2, delta = 1e-5, seed = 1)$state, fit$state)
})

test_that("coef, confint, vcov, tidy and the intervals agree with each other", {
  fit <- cluster_fit()
  t <- tidy(fit, conf.int = TRUE)
  ci <- confint(fit)
  expect_identical(t$conf.low, unname(ci[, 1]))
  expect_identical(t$estimate, as.vector(t(coef(fit))))
  expect_identical(rownames(confint(fit, 2)), c("2:x", "2:y"))
  expect_true(all(confint(fit, level = 0.5)[, 1] > ci[, 1]))
  expect_equal(sqrt(diag(vcov(fit, 1))), setNames(t$std.error[1:2], c("x", "y")), tolerance = 1e-12)
})

test_that("new rows are assigned, and only new rows", {
  fit <- cluster_fit()
  new <- data.frame(x = c(3, -3, NA), y = c(3, -3, 0))
  labels <- predict(fit, new)
  expect_identical(is.na(labels), c(FALSE, FALSE, TRUE))
  expect_equal(unname(coef(fit)[labels[1], ]), c(3, 3), tolerance = 0.2)
  expect_identical(augment(fit, new)$.component, labels)
  expect_error(predict(fit), class = "dpmode_NotReleased")
  for (f in list(residuals, fitted, logLik)) expect_error(f(fit), class = "dpmode_NotReleased")
})

test_that("results print, draw and are saved", {
  fit <- cluster_fit()
  expect_output(print(fit), "Clusters, simulated noise \\(NOT PRIVATE\\), in \\(x, y\\)")
  expect_output(print(cluster_fit(k = NULL, centres = "modes")), "centres by modes")
  file <- withr_file(".pdf")
  grDevices::pdf(file)
  on.exit(grDevices::dev.off(), add = TRUE)
  expect_invisible(plot(fit))
  other <- dp_write(fit, withr_file(".json"))
  expect_identical(coef(dp_read(other)), coef(fit))
  expect_s3_class(surface(fit), "dp_surface")
})

test_that("clusters that are not found again are marked as in the summary", {
  fit <- cluster_fit()
  expect_true(all(tidy(fit)$reliable))
  expect_false(any(grepl("?", format(fit), fixed = TRUE)))
  # So many that some stand on noise alone.
  many <- suppressWarnings(
    dp_modal_clusters(~ x + y, points_table(300), k = 9, bounds = square, epsilon = 0.3, delta = 1e-5, seed = 1)
  )
  rows <- tidy(many)[tidy(many)$term == "x", ]
  expect_identical(rows$reliable, rows$statistic >= 3 & rows$found.again >= 0.8)
  expect_false(all(rows$reliable))
  marked <- paste0("^", rows$component, ifelse(rows$reliable, " ", " \\?"), " +")
  for (start in marked) expect_match(format(many), start, all = FALSE)
  expect_match(format(many), "^[?] Cluster that cannot be relied on: summary\\(\\) says why[.]$", all = FALSE)
  listed <- paste(rows$component[!rows$reliable], collapse = ", ")
  told <- gsub("\\s+", " ", summary(many)$text)
  expect_match(told, paste0("? Not to be relied on: clusters ", listed), fixed = TRUE)
})

test_that("every argument of the Python model is reached", {
  need_python()
  python <- dpmode:::call_python("signatures")
  has <- function(fun) c(names(formals(fun)), "self", "columns", "log", "n_clusters")
  expect_length(setdiff(unlist(python$ModalClustering), has(dp_modal_clusters)), 0)
  expect_length(setdiff(unlist(python[["ModalClustering.fit"]]), has(dp_modal_clusters)), 0)
  expect_length(setdiff(unlist(python[["ModalClustering.preview"]]), has(preview_clusters)), 0)
})
