#' Picture of a modal regression
#'
#' The branches over the released density, with a band for their errors; branches that cannot be told from noise are
#' dashed. Of a line (`kind = "linear"`) the line with its band, in their place. With one predictor; with a grouping column one panel
#' per level, each over the density of its own level, all on one scale of colours. The density is left blank at predictor
#' values where it does not stand out of its noise: all of the panel for a level of next to no records.
#'
#' @param x A result of [dp_modal_regression()].
#' @param level Coverage of the bands, pointwise.
#' @param main,xlab,ylab Title and labels; made from the result when `NULL`.
#' @param ... Further graphical parameters, for the axes.
#' @return `x`, invisibly.
#' @export
plot.dp_modal_regression <- function(x, level = 0.95, main = NULL, xlab = NULL, ylab = NULL, ...) {
  one_predictor(x, "plot()")
  names <- c(unlist(x$predictors), x$response)
  axes <- lapply(names, function(name) axis_of(x, name))
  groups <- groups_of(x)
  grids <- lapply(groups, function(group) group_grid(x, group))
  top <- top_of_scale(grids)
  colours <- if (top > 0) pretty(c(0, top), 12L)
  found <- at_level(x, level)
  old <- panel_layout(length(groups), axes, !is.null(x$by))
  on.exit(graphics::par(old))
  for (k in seq_along(groups)) {
    map_panel(structure(list(), class = "dp_surface"), drawn_grid(grids[[k]], top), names, axes, colours, level, ...)
    if (is_line(x)) draw_line(finite_line(line_table(x, groups[[k]], axes[[1L]]$range, level))) else draw_branches(found, groups[[k]])
    if (is_blank(grids[[k]])) graphics::text(mean(axes[[1L]]$range), mean(axes[[2L]]$range), blank_words, col = "grey40")
    if (!is.null(x$by)) graphics::mtext(paste(x$by, "=", groups[[k]]), side = 3L, line = 0.4, adj = 0, cex = 0.9)
    graphics::title(xlab = if (is.null(xlab)) axes[[1L]]$title else xlab)
    graphics::title(ylab = if (is.null(ylab)) axes[[2L]]$title else ylab, line = label_width(axes[[2L]]) - 0.8)
  }
  left <- graphics::grconvertX(graphics::par("mar")[[2L]], "lines", "ndc")
  graphics::mtext(if (is.null(main)) picture_title(x) else main, outer = TRUE, side = 3L, line = 1.5, at = left, adj = 0)
  graphics::mtext(key_text(x, level), outer = TRUE, side = 3L, line = 0.4, at = left, adj = 0, cex = 0.75, col = "grey30")
  invisible(x)
}

# What the lines are, in words: there is no room for a legend that covers nothing.
key_text <- function(x, level) {
  band <- paste0(format(100 * level), "% band, pointwise")
  if (is_line(x)) return(paste0("Modal line with ", band))
  if (all(x$branches$certified)) return(paste0("Branches (certified) with ", band))
  paste0("Branches with ", band, "; solid: certified, dashed: may be noise")
}

one_predictor <- function(x, what) {
  if (length(x$predictors) != 1L) {
    abort("InvalidArgument", what, " draws one predictor; use predict() along a line for more")
  }
}

# Names of the levels; one NA without a grouping column.
groups_of <- function(x) if (is.null(x$by)) NA_character_ else level_names(x)

# The released density of a level (or of all rows) on a grid, NaN where it does not stand out; NULL without a surface.
group_grid <- function(x, group) {
  if (!isTRUE(x$has_surface)) return(NULL)
  call_python("regression_grid", state = x$state, points = 161, group = if (!is.na(group)) group_of(x, group))
}

blank_words <- "nothing stands out of the noise"

is_blank <- function(grid) !is.null(grid) && !isTRUE(grid$known)

# The highest density of the scale of colours. Levels with few records have densities of much noise: those whose
# highest density is far less clear of its noise than that of the clearest level do not set the scale.
top_of_scale <- function(grids) {
  grids <- Filter(function(grid) isTRUE(grid$known), grids)
  if (!length(grids)) return(0)
  tops <- vapply(grids, function(grid) max(0, grid$density, na.rm = TRUE), 0)
  noise <- vapply(grids, function(grid) grid$noise_sd, 0)
  clear <- ifelse(noise > 0, tops / noise, Inf)
  max(tops[clear >= max(clear) / 4])
}

# What is drawn of a grid: nothing where nothing is known, and the darkest colour above the scale.
drawn_grid <- function(grid, top) {
  if (is.null(grid) || is_blank(grid) || top <= 0) return(NULL)
  grid$density[] <- pmin(pmax(grid$density, 0), top)
  grid
}

label_width <- function(axis) 2.4 + 0.55 * max(nchar(axis$labels))

panel_layout <- function(count, axes, titled) {
  columns <- min(count, 3L)
  graphics::par(
    mfrow = c(ceiling(count / columns), columns), mar = c(4.2, label_width(axes[[2L]]) + 0.6, if (titled) 1.8 else 0.6, 0.8),
    oma = c(0, 0, 3, 0.4)
  )
}

# A line in the coordinates' units is straight, and its band is not.
line_table <- function(x, group, range, level) {
  k <- x$coefficients
  if (!is.na(group)) k <- k[as.character(k[[x$by]]) == group, ]
  at <- seq(range[[1L]], range[[2L]], length.out = 101L)
  covariance <- vcov(x, group = if (!is.na(group)) group_of(x, group))
  rows <- cbind(1, at)
  half <- stats::qnorm((1 + level) / 2) * sqrt(rowSums((rows %*% covariance) * rows))
  estimate <- as.vector(rows %*% k$estimate)
  data.frame(x = at, estimate = estimate, lower = estimate - half, upper = estimate + half)
}

# A line without errors is the best of a search that found no maximum: not drawn.
finite_line <- function(line) line[is.finite(line$lower), ]

draw_line <- function(line) if (nrow(line)) draw_with_band(line$x, line$estimate, line$lower, line$upper, 1L)

draw_with_band <- function(x, estimate, lower, upper, lty) {
  graphics::polygon(c(x, rev(x)), c(lower, rev(upper)), border = NA, col = grDevices::adjustcolor(mode_colour, 0.25))
  graphics::lines(x, estimate, col = "white", lwd = 3.4)
  graphics::lines(x, estimate, col = mode_colour, lwd = 1.8, lty = lty)
}

draw_branches <- function(x, group) {
  table <- branch_table(x)
  if (!is.na(group)) table <- table[table$group == group, ]
  for (part in split(table, table$piece)) {
    draw_with_band(part$x, part$estimate, part$lower, part$upper, if (part$certified[[1L]]) 1L else 2L)
  }
  first <- table[!duplicated(table$branch), ]
  if (nrow(first)) halo_text(first$x, first$estimate, first$branch)
}

# Branches in the coordinates' units, cut into pieces that are drawn without a gap: a gap in the grid is one in the line.
branch_table <- function(x) {
  b <- x$branches
  j <- match(unlist(x$predictors)[[1L]], terms_of(x))
  column <- b[[setdiff(grid_columns(b), x$by)[[1L]]]]
  group <- if (is.null(x$by)) rep("", nrow(b)) else as.character(b[[x$by]])
  at <- if (x$coordinates$transform[[j]] == "log") log(column) else as.double(column)
  table <- data.frame(
    x = at, estimate = b$estimate, lower = b$lower, upper = b$upper, branch = b$branch,
    certified = as.logical(b$certified), group = factor(group, if (is.null(x$by)) "" else level_names(x))
  )
  table <- table[!is.na(table$branch) & !is.na(table$estimate), ]
  table <- table[order(table$group, table$branch, table$x), ]
  step <- min(diff(sort(unique(at))), Inf)
  new <- c(TRUE, diff(as.integer(table$group)) != 0 | diff(table$branch) != 0 | diff(table$x) > 1.5 * step |
    diff(table$certified) != 0)
  table$piece <- if (nrow(table)) cumsum(new) else integer()
  table
}
