# Pictures in base graphics. All are post-processing of the release.

mode_colour <- "#D55E00"
curve_colour <- "#0072B2"

surface_palette <- function(n) c("#FFFFFF", grDevices::hcl.colors(n - 1L, "YlGnBu", rev = TRUE))

#' Pictures of a density and its modes
#'
#' One coordinate: the density with a band for its privacy noise, and the modes with their intervals. Two: filled
#' contours, and the modes with 95% regions. More: all pairs. Coordinates on a log or a time scale have their ticks in the
#' original units.
#'
#' @param x A result of [dp_modes()] or a [surface()].
#' @param columns Names of the coordinates to draw; all when `NULL`.
#' @param level Coverage of band, intervals and regions.
#' @param main,xlab,ylab Title and labels; made from the result when `NULL`.
#' @param key Whether to draw the scale of the density beside two coordinates.
#' @param ... Further graphical parameters, for the axes.
#' @return `x`, invisibly.
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modes(~ age + log(wage), dp_data("wages"),
#'   bounds = list(age = c(15, 90), wage = c(1000, 300000)), resolution = c(age = 1),
#'   epsilon = 1, delta = 1e-6
#' )
#' plot(fit)
#' plot(surface(fit, columns = "age"))
#' @export
plot.dp_modes <- function(x, columns = NULL, level = 0.95, main = NULL, xlab = NULL, ylab = NULL, key = TRUE, ...) {
  draw_result(x, columns, level, main, xlab, ylab, key, ...)
}

#' @rdname plot.dp_modes
#' @export
plot.dp_surface <- function(x, columns = NULL, level = 0.95, main = NULL, xlab = NULL, ylab = NULL, key = TRUE, ...) {
  draw_result(x, columns, level, main, xlab, ylab, key, ...)
}

draw_result <- function(x, columns, level, main, xlab, ylab, key, ...) {
  terms <- terms_of(x)
  columns <- if (is.null(columns)) terms else columns
  unknown <- setdiff(columns, terms)
  if (length(unknown)) {
    abort("UnknownColumn", "columns names ", paste(unknown, collapse = ", "), "; there are ", paste(terms, collapse = ", "))
  }
  if (is.null(main)) main <- picture_title(x)
  has_density <- inherits(x, "dp_surface") || isTRUE(x$has_surface)
  released <- if (has_density) surface(x) else NULL
  if (length(columns) == 1L) {
    draw_curve(x, released, columns, level, main, xlab, ylab, ...)
  } else if (length(columns) == 2L) {
    draw_map(x, released, columns, level, main, xlab, ylab, key, ...)
  } else {
    draw_pairs(x, released, columns, level, main, ...)
  }
  invisible(x)
}

# Whether there are modes or centres to draw.
has_points <- function(x) inherits(x, c("dp_modes", "dp_modal_clusters")) && nrow(x$estimates) > 0L

# Modes with an interval, and clusters, to rely on.
is_solid <- function(e) if (is.null(e$reliable)) rep(TRUE, nrow(e)) else e$reliable

picture_title <- function(x) {
  p <- x$privacy
  what <- if (inherits(x, "dp_surface")) "Released density" else "Private modes of the density"
  if (inherits(x, "dp_modal_regression")) what <- paste("Private modes of", x$formula_text)
  if (inherits(x, c("dp_modal_clusters", "dp_pca_clusters"))) what <- "Private clusters"
  if (is.null(p)) return(what)
  if (isTRUE(p$simulated)) return(paste0(sub("^Private m", "M", sub("^Private c", "C", what)), ", simulated noise (NOT PRIVATE)"))
  paste0(what, ", epsilon = ", format(p$epsilon, digits = 4L), ", delta = ", format(p$delta))
}

# How a coordinate is drawn: ticks in the original units.
axis_of <- function(x, name) {
  j <- match(name, terms_of(x))
  range <- c(x$lower[[j]], x$upper[[j]])
  log <- x$coordinates$transform[[j]] == "log"
  time <- x$coordinates$kind[[j]] == "datetime"
  column <- as.character(x$coordinates$column[[j]])
  if (log) {
    shown <- grDevices::axisTicks(log10(exp(range)), log = TRUE, nint = 7L)
    at <- log(shown)
    labels <- format(shown, big.mark = ",", scientific = FALSE, trim = TRUE, drop0trailing = TRUE)
    title <- paste0(column, " (log scale)")
  } else if (time) {
    shown <- pretty(as.POSIXct(range, origin = "1970-01-01", tz = "UTC"))
    at <- as.double(shown)
    inside <- at >= range[[1L]] & at <= range[[2L]]
    labels <- attr(shown, "labels")
    words <- time_words(shown[inside], labels[inside])
    labels[inside] <- words$labels
    title <- paste0(column, words$when)
  } else {
    at <- pretty(range)
    labels <- format(at, big.mark = ",", trim = TRUE, drop0trailing = TRUE)
    title <- if (x$coordinates$kind[[j]] == "timedelta") paste(name, "(seconds)") else name
  }
  keep <- at >= range[[1L]] & at <= range[[2L]]
  list(range = range, at = at[keep], labels = labels[keep], title = title, j = j)
}

# What the labels of a time axis leave out, the year or the day, goes into the title; or to each label where it changes.
time_words <- function(times, labels) {
  days <- unique(format(times, "%Y-%m-%d"))
  years <- format(times, "%Y")
  clock <- any(grepl(":", labels, fixed = TRUE))
  when <- ""
  if (clock && length(days) == 1L) {
    when <- paste0(" (", days, ", UTC)")
  } else if (any(grepl("[0-9]{4}", labels))) {
    when <- if (clock) " (UTC)" else ""
  } else if (length(unique(years)) == 1L) {
    when <- paste0(" (", years[[1L]], if (clock) ", UTC", ")")
  } else {
    labels <- paste(labels, years)
  }
  list(labels = labels, when = when)
}

draw_axis <- function(side, axis, ...) {
  graphics::axis(side, at = axis$at, labels = axis$labels, las = 1L, gap.axis = 0.3, col = NA, col.ticks = "grey30", ...)
}

draw_curve <- function(x, released, name, level, main, xlab, ylab, ...) {
  axis <- axis_of(x, name)
  noise <- 0
  if (is.null(released)) {
    at <- axis$range
    density <- c(0, 0)
    top <- 1
  } else {
    grid <- surface_grid(released, 601, name)
    at <- grid$axes[[1L]]
    density <- as.vector(grid$density)
    noise <- stats::qnorm((1 + level) / 2) * grid$noise_sd
    top <- max(density + noise)
  }
  old <- graphics::par(mar = c(4.2, 5, 3, 1))
  on.exit(graphics::par(old))
  graphics::plot.default(
    at, density, type = "n", xlim = axis$range, ylim = c(min(0, density - noise), top * 1.12), xaxs = "i", axes = FALSE,
    xlab = if (is.null(xlab)) axis$title else xlab,
    ylab = "", main = main, font.main = 1L, cex.main = 1.05
  )
  draw_axis(1L, axis, ...)
  graphics::axis(2L, las = 1L, col = NA, col.ticks = "grey30", ...)
  graphics::title(ylab = if (is.null(ylab)) paste("density of", name) else ylab, line = 3.6)
  if (!is.null(released)) {
    graphics::polygon(
      c(at, rev(at)), c(density + noise, rev(density - noise)), border = NA,
      col = grDevices::adjustcolor(curve_colour, 0.25)
    )
    graphics::abline(h = 0, col = "grey80")
    graphics::lines(at, density, col = curve_colour, lwd = 1.8)
  }
  graphics::box(col = "grey60")
  if (has_points(x)) draw_lines(at_level(x, level), name, top)
}

# Modes of one coordinate: a line at each, its interval as a bar at the height of the mode.
draw_lines <- function(x, name, top) {
  e <- x$estimates[x$estimates$term == name, ]
  graphics::rect(e$lower, 0, e$upper, top * 1.03, border = NA, col = grDevices::adjustcolor(mode_colour, 0.15))
  graphics::segments(e$estimate, 0, e$estimate, top * 1.03, col = mode_colour, lty = ifelse(is_solid(e), 1L, 2L))
  # Numbers where they have room; where modes are many the highest have it first.
  room <- graphics::strwidth("000")
  for (k in seq_along(e$mode)) {
    if (k == 1L || min(abs(e$estimate[[k]] - e$estimate[seq_len(k - 1L)])) > room) {
      graphics::text(e$estimate[[k]], top * 1.07, e$mode[[k]], col = mode_colour, font = 2L, xpd = NA)
    }
  }
}

draw_map <- function(x, released, names, level, main, xlab, ylab, key, ...) {
  axes <- lapply(names, function(name) axis_of(x, name))
  grid <- if (!is.null(released)) surface_grid(released, 161, names)
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  if (key && !is.null(grid)) {
    graphics::layout(matrix(1:2, 1L), widths = c(1, graphics::lcm(3.2)))
  }
  widest <- max(nchar(axes[[2L]]$labels))
  graphics::par(mar = c(4.2, max(4.2, 2.4 + 0.55 * widest), 3, 0.8))
  levels <- if (!is.null(grid)) pretty(c(0, max(grid$density)), 12L)
  map_panel(x, grid, names, axes, levels, level, ...)
  # From the left edge, and on over the key where it is long.
  graphics::mtext(main, side = 3L, line = 1, adj = 0, xpd = NA)
  graphics::title(xlab = if (is.null(xlab)) axes[[1L]]$title else xlab)
  graphics::title(ylab = if (is.null(ylab)) axes[[2L]]$title else ylab, line = 1.3 + 0.55 * widest)
  if (key && !is.null(grid)) draw_key(levels, names)
}

map_panel <- function(x, grid, names, axes, levels, level, axis_sides = 1:2, ...) {
  graphics::plot.new()
  graphics::plot.window(axes[[1L]]$range, axes[[2L]]$range, xaxs = "i", yaxs = "i")
  if (!is.null(grid)) {
    density <- pmax(grid$density, 0)
    dim(density) <- dim(grid$density)
    graphics::.filled.contour(
      grid$axes[[1L]], grid$axes[[2L]], density, levels, surface_palette(length(levels) - 1L)
    )
  }
  for (side in axis_sides) draw_axis(side, axes[[side]], ...)
  graphics::box(col = "grey60")
  if (has_points(x)) draw_points(x, names, level)
}

draw_points <- function(x, names, level) {
  at <- mode_centres(x)[, names, drop = FALSE]
  first <- x$estimates[x$estimates$term == names[[1L]], ]
  for (k in seq_len(nrow(at))) {
    ring <- ellipse(at[k, ], mode_covariance(x, k, names), level)
    graphics::lines(ring, col = "white", lwd = 3)
    graphics::lines(ring, col = mode_colour, lwd = 1.6)
  }
  graphics::points(at, pch = 21L, col = mode_colour, bg = ifelse(is_solid(first), mode_colour, "white"), cex = 0.8, lwd = 1.4)
  halo_text(at[, 1L], at[, 2L], first$mode)
}

# Above and right of the points; below or left where that would be outside of the axes.
halo_text <- function(x, y, labels) {
  cm <- graphics::par("cxy")
  ends <- graphics::par("usr")
  x <- x + ifelse(x > ends[[2L]] - 1.5 * cm[[1L]], -0.9, 0.9) * cm[[1L]]
  y <- y + ifelse(y > ends[[4L]] - 1.2 * cm[[2L]], -0.6, 0.6) * cm[[2L]]
  for (angle in seq(0, 2 * pi, length.out = 9L)[-9L]) {
    graphics::text(x + 0.08 * cm[[1L]] * cos(angle), y + 0.08 * cm[[2L]] * sin(angle), labels, col = "white", font = 2L)
  }
  graphics::text(x, y, labels, col = mode_colour, font = 2L)
}

mode_covariance <- function(x, k, names) {
  j <- match(names, terms_of(x))
  x$covariance[[k]][j, j, drop = FALSE]
}

# The boundary of a normal region of the given coverage, 181 points; none where the error is not known (at a bound).
ellipse <- function(centre, covariance, level) {
  if (!all(is.finite(covariance))) return(matrix(0, 0L, 2L))
  parts <- eigen(covariance, symmetric = TRUE)
  root <- parts$vectors %*% diag(sqrt(pmax(parts$values, 0)), length(centre))
  angle <- seq(0, 2 * pi, length.out = 181L)
  circle <- rbind(cos(angle), sin(angle)) * sqrt(stats::qchisq(level, 2))
  t(centre + root %*% circle)
}

draw_key <- function(levels, names) {
  graphics::par(mar = c(4.2, 0.4, 3, 4.6))
  graphics::plot.new()
  graphics::plot.window(c(0, 1), range(levels), xaxs = "i", yaxs = "i")
  n <- length(levels)
  graphics::rect(0, levels[-n], 1, levels[-1L], col = surface_palette(n - 1L), border = NA)
  graphics::axis(4L, las = 1L, col = NA, col.ticks = "grey30", cex.axis = 0.85)
  graphics::box(col = "grey60")
  graphics::mtext(paste0("density of (", paste(names, collapse = ", "), ")"), side = 4L, line = 3.4, cex = 0.85)
}

draw_pairs <- function(x, released, names, level, main, ...) {
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  d <- length(names)
  graphics::par(mfrow = c(d, d), mar = c(1.2, 1.6, 0.8, 0.6), oma = c(3, 4, 3, 1), mgp = c(2, 0.6, 0))
  for (row in seq_len(d)) for (column in seq_len(d)) {
    if (column > row) {
      graphics::plot.new()
    } else if (column == row) {
      diagonal_panel(x, released, names[[row]], level, last = row == d)
    } else {
      pair <- names[c(column, row)]
      axes <- lapply(pair, function(name) axis_of(x, name))
      grid <- if (!is.null(released)) surface_grid(released, 61, pair)
      levels <- if (!is.null(grid)) pretty(c(0, max(grid$density)), 10L)
      map_panel(x, grid, pair, axes, levels, level, axis_sides = c(if (row == d) 1L, if (column == 1L) 2L))
    }
    if (row == d) graphics::mtext(axis_of(x, names[[column]])$title, 1L, line = 2.2, cex = 0.7)
    if (column == 1L) graphics::mtext(axis_of(x, names[[row]])$title, 2L, line = 3.4, cex = 0.7)
  }
  graphics::mtext(main, outer = TRUE, line = 1, cex = 0.95)
}

diagonal_panel <- function(x, released, name, level, last) {
  axis <- axis_of(x, name)
  graphics::plot.new()
  if (is.null(released)) return(graphics::plot.window(axis$range, c(0, 1), xaxs = "i"))
  grid <- surface_grid(released, 201, name)
  density <- as.vector(grid$density)
  graphics::plot.window(axis$range, c(min(0, density), 1.1 * max(density)), xaxs = "i")
  graphics::lines(grid$axes[[1L]], density, col = curve_colour, lwd = 1.6)
  if (has_points(x)) {
    graphics::abline(v = mode_centres(x)[, name], col = mode_colour, lty = 2L)
  }
  if (last) draw_axis(1L, axis)
  graphics::box(col = "grey60")
}
