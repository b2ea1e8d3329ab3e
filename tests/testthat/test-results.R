test_that("coef, confint, tidy and the intervals agree with each other", {
  fit <- fit_of("plane")
  ci <- confint(fit)
  expect_identical(dim(ci), c(8L, 2L))
  expect_identical(colnames(ci), c("2.5 %", "97.5 %"))
  expect_identical(rownames(ci)[1:2], c("1:x", "1:y"))
  t <- tidy(fit, conf.int = TRUE)
  expect_identical(t$conf.low, unname(ci[, 1]))
  expect_identical(t$estimate, as.vector(t(coef(fit))))
  parts <- sqrt(t$std.error.privacy^2 + t$std.error.sampling^2 + t$std.error.bias^2)
  expect_equal(parts, t$std.error, tolerance = 1e-12)
  expect_equal(sqrt(diag(vcov(fit, 2))), setNames(t$std.error[3:4], c("x", "y")), tolerance = 1e-12)
})

test_that("another level widens or narrows the intervals", {
  fit <- fit_of("plane")
  width <- function(level) diff(t(confint(fit, level = level)))
  expect_true(all(width(0.8) < width(0.95)))
  expect_equal(as.vector(width(0.8) / width(0.95)), rep(qnorm(0.9) / qnorm(0.975), 8), tolerance = 1e-9)
  expect_identical(rownames(confint(fit, "x")), paste0(1:4, ":x"))
  expect_identical(rownames(confint(fit, 2)), c("2:x", "2:y"))
  expect_error(confint(fit, "z"), class = "dpmode_InvalidArgument")
  expect_error(confint(fit, level = 2), class = "dpmode_InvalidArgument")
})

test_that("predict and augment tell the mode of new rows, and only of new rows", {
  fit <- fit_of("plane")
  new <- data.frame(x = c(3, -3, NA), y = c(3, -3, 0), other = letters[1:3])
  labels <- predict(fit, new)
  expect_type(labels, "integer")
  expect_identical(is.na(labels), c(FALSE, FALSE, TRUE))
  expect_equal(unname(coef(fit)[labels[1], ]), c(3, 3), tolerance = 0.2)
  expect_identical(predict(fit, new, type = "basin")[1:2], labels[1:2])
  expect_identical(augment(fit, new)$.component, labels)
  expect_identical(names(augment(fit, new)), c(names(new), ".component"))
  expect_error(predict(fit), class = "dpmode_NotReleased")
  expect_error(augment(fit), class = "dpmode_NotReleased")
  expect_error(predict(fit, data.frame(x = 1)), class = "dpmode_UnknownColumn")
})

test_that("what would need the rows is refused, with its reason", {
  fit <- fit_of("plane")
  for (f in list(residuals, fitted, logLik, model.frame, update)) {
    expect_error(f(fit), class = "dpmode_NotReleased")
  }
  expect_error(AIC(fit), class = "dpmode_NotReleased")
})

test_that("glance is one row with the guarantee", {
  g <- glance(fit_of("plane"))
  expect_identical(nrow(g), 1L)
  expect_identical(c(g$epsilon, g$delta), c(2, 1e-5))
  expect_true(g$simulated)
  expect_equal(g$nobs, 1500, tolerance = 0.05)
})

test_that("prints say what they are, and that a seed is not private", {
  fit <- fit_of("plane")
  expect_output(print(fit), "NOT PRIVATE")
  expect_output(print(fit), "of the density of \\(x, y\\)")
  expect_output(print(summary(fit)), "Modes of the density, simulated noise")
  expect_match(as.character(summary(fit, format = "html")), "<table", fixed = TRUE)
  expect_match(as.character(summary(fit, level = 0.9)), "[0.05", fixed = TRUE)
  expect_output(print(privacy(fit)), "Bounds of x: -8 to 8")
  expect_output(print(surface(fit)), "Noise sd")
})

test_that("results are plain lists: saved, read and used in another session", {
  fit <- fit_of("plane")
  file <- withr_file(".rds")
  saveRDS(fit, file)
  expect_identical(readRDS(file), fit)
  expect_identical(confint(readRDS(file), level = 0.5), confint(fit, level = 0.5))
  types <- rapply(unclass(fit)[setdiff(names(fit), c("call", "formula"))], typeof)
  expect_false(any(types %in% c("externalptr", "environment", "closure")))
})

test_that("files are those of Python", {
  fit <- fit_of("plane")
  file <- dp_write(fit, withr_file(".json.gz"))
  expect_identical(coef(dp_read(file)), coef(fit))
  expect_identical(class(dp_read(file)), class(fit))
  other <- dp_write(surface(fit), withr_file(".json"))
  expect_identical(dp_read(other)$state, surface(fit)$state)
  bad <- withr_file(".json")
  writeLines("{}", bad)
  expect_error(dp_read(bad), class = "dpmode_SurfaceFileError")
})

test_that("a surface is read, integrated, sampled and narrowed at no cost", {
  fit <- fit_of("plane")
  s <- surface(fit)
  expect_equal(share_between(s, list(x = c(-8, 8))), 1, tolerance = 0.05)
  expect_equal(share_between(s, list(x = c(0, 8), y = c(0, 8))), 0.25, tolerance = 0.2)
  expect_error(share_between(s, list(z = c(0, 1))), class = "dpmode_InvalidArgument")
  sample <- simulate(s, nsim = 50, seed = 3)
  expect_identical(dim(sample), c(50L, 2L))
  expect_identical(simulate(s, nsim = 50, seed = 3), sample)
  line <- surface(fit, columns = "x")
  expect_identical(as.character(line$coordinates$name), "x")
  expect_identical(surface(fit, bandwidth = c(x = 1, y = 1))$bandwidth, c(1, 1))
  grid <- as.data.frame(line, points = 11)
  expect_equal(grid$density, predict(line, grid["x"])$density, tolerance = 1e-9)
  expect_identical(ncol(predict(s, data.frame(x = 0, y = 0), type = "all")), 8L)
})

test_that("modes of a surface cost nothing", {
  fit <- fit_of("plane")
  line <- dp_modes(~x, fit)
  expect_s3_class(line, "dp_modes")
  expect_identical(privacy(line)$epsilon, 2)
  expect_error(dp_modes(~x, fit, epsilon = 1), "costs nothing", class = "dpmode_InvalidArgument")
})

test_that("pictures are drawn, and leave the device as it was", {
  file <- withr_file(".pdf")
  grDevices::pdf(file)
  on.exit(grDevices::dev.off(), add = TRUE)
  before <- graphics::par(no.readonly = TRUE)
  for (name in c("plane", "line", "log")) {
    expect_invisible(plot(fit_of(name)))
    expect_identical(graphics::par("mar", "mfrow"), before[c("mar", "mfrow")])
    expect_s3_class(ggplot2::autoplot(fit_of(name)), "ggplot")
    print(ggplot2::autoplot(fit_of(name)))
  }
  plot(surface(fit_of("plane"), columns = "y"))
  expect_error(plot(fit_of("plane"), columns = "z"), class = "dpmode_UnknownColumn")
  expect_gt(file.size(file), 10000)
})

test_that("errors speak of arguments as they are in R", {
  need_python()
  said <- function(expr) tryCatch(expr, error = conditionMessage)
  table <- points_table(200)
  expect_match(said(dp_modes(~x, table, epsilon = 1, delta = 1e-5)), "give bounds = list(x = c(low, high))", fixed = TRUE)
  expect_match(said(dp_modal_clusters(~ x + y, table, 500, square, 1, 1e-5)), "k = 500 is more than the 200 rows")
  expect_match(said(dp_modal_regression(y ~ x, table, square, 1, 1e-5, by = "x")), "by = 'x' and levels = NULL")
  expect_match(said(dp_pca(~ x + y, table, square, 1, 1e-5, n_components = 1)), "or radius = 'private'")
})
