#' Pictures with ggplot2
#'
#' The released density with the modes or centres; over that of a modal regression with one predictor its branches with bands,
#' dashed where they cannot be told from noise, or its line, one panel per level of a grouping column.
#'
#' @param object A result of this package or a [surface()], of one or two coordinates (name them in `columns`).
#' @param columns,level As in [plot.dp_modes()].
#' @param ... Not used.
#' @return A ggplot.
#' @examplesIf dpmode:::python_works() && requireNamespace("ggplot2", quietly = TRUE)
#' fit <- dp_modes(~age, dp_data("wages"),
#'   bounds = list(age = c(15, 90)), resolution = c(age = 1), epsilon = 1, delta = 1e-6
#' )
#' ggplot2::autoplot(fit)
#' @name autoplot
NULL

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.dp_modes <- function(object, columns = NULL, level = 0.95, ...) {
  picture <- autoplot_surface(surface(object), columns, level) + ggplot2::ggtitle(picture_title(object))
  columns <- if (is.null(columns)) terms_of(object) else columns
  if (object$n_modes == 0L) return(picture)
  if (length(columns) == 1L) return(picture + mode_lines(at_level(object, level), columns))
  picture + mode_rings(object, columns, level)
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.dp_modal_clusters <- function(object, columns = NULL, level = 0.95, ...) {
  columns <- if (is.null(columns)) terms_of(object) else columns
  if (!isTRUE(object$has_surface)) abort("NoSurface", "autoplot() draws the released density, and this result was saved without it")
  picture <- autoplot_surface(surface(object), columns, level) + ggplot2::ggtitle(picture_title(object))
  if (object$n_clusters == 0L) return(picture)
  if (length(columns) == 1L) return(picture + mode_lines(at_level(object, level), columns))
  picture + mode_rings(object, columns, level)
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.dp_pca_clusters <- function(object, columns = NULL, level = 0.95, ...) {
  ggplot2::autoplot(object$clusters, columns = columns, level = level, ...) + ggplot2::ggtitle(picture_title(object))
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.dp_modal_regression <- function(object, level = 0.95, ...) {
  one_predictor(object, "autoplot()")
  names <- c(unlist(object$predictors), object$response)
  axes <- lapply(names, function(name) axis_of(object, name))
  groups <- groups_of(object)
  layers <- if (is_line(object)) {
    line_layers(do.call(rbind, lapply(groups, function(group) {
      line <- finite_line(line_table(object, group, axes[[1L]]$range, level))
      if (nrow(line)) cbind(line, group = panel_factor(object, group))
    })))
  } else {
    branch_layers(branch_table(at_level(object, level)))
  }
  ggplot2::ggplot() + density_layers(object, groups) + layers + group_panels(object) + ggplot2::theme_bw() +
    axis_scales(axes) + ggplot2::theme(
      panel.grid = ggplot2::element_blank(), panel.spacing = ggplot2::unit(1.2, "lines")
    ) + ggplot2::ggtitle(picture_title(object), key_text(object, level))
}

panel_factor <- function(x, group) if (is.na(group)) factor("") else factor(group, level_names(x))

# The released density of each level in its own panel, on one scale of colours; blank where nothing is known.
density_layers <- function(x, groups) {
  if (!isTRUE(x$has_surface)) return(NULL)
  grids <- lapply(groups, function(group) group_grid(x, group))
  top <- top_of_scale(grids)
  table <- do.call(rbind, Map(function(grid, group) {
    out <- raster_table(grid)
    out$density <- pmin(out$density, top)
    cbind(out, group = panel_factor(x, group))
  }, grids, groups))
  c(list(
    ggplot2::geom_raster(
      ggplot2::aes(x = .data$x, y = .data$y, fill = .data$density), data = table, interpolate = TRUE
    ),
    ggplot2::scale_fill_gradientn(
      "density", colours = surface_palette(14L), limits = c(0, if (top > 0) top else 1), na.value = "transparent",
      guide = if (top > 0) "colourbar" else "none"
    )
  ), blank_layer(x, grids, groups))
}

blank_layer <- function(x, grids, groups) {
  blank <- vapply(grids, is_blank, NA)
  if (!any(blank)) return(NULL)
  table <- do.call(rbind, Map(function(grid, group) {
    data.frame(x = mean(range(grid$axes[[1L]])), y = mean(range(grid$axes[[2L]])), group = panel_factor(x, group))
  }, grids[blank], groups[blank]))
  list(ggplot2::geom_text(
    ggplot2::aes(x = .data$x, y = .data$y), data = table, label = blank_words, inherit.aes = FALSE, colour = "grey40", size = 3.2
  ))
}

raster_table <- function(grid) {
  table <- expand.grid(x = grid$axes[[1L]], y = grid$axes[[2L]], KEEP.OUT.ATTRS = FALSE)
  table$density <- pmax(as.vector(grid$density), 0)
  table
}

branch_layers <- function(table) {
  first <- table[!duplicated(table[c("group", "branch")]), ]
  c(band_layers(table, ggplot2::aes(
    x = .data$x, y = .data$estimate, group = .data$piece, linetype = .data$certified
  )), list(
    ggplot2::scale_linetype_manual(
      "branch", values = c(`TRUE` = "solid", `FALSE` = "dashed"),
      labels = c(`TRUE` = "certified", `FALSE` = "may be noise"), breaks = c("TRUE", "FALSE")
    ),
    ggplot2::geom_text(
      ggplot2::aes(x = .data$x, y = .data$estimate, label = .data$branch), data = first, inherit.aes = FALSE,
      colour = mode_colour, fontface = "bold", hjust = -0.9, vjust = -0.6
    )
  ))
}

line_layers <- function(table) {
  if (is.null(table)) return(NULL)
  table$piece <- table$group
  band_layers(table, ggplot2::aes(x = .data$x, y = .data$estimate, group = .data$piece))
}

band_layers <- function(table, line) {
  list(
    ggplot2::geom_ribbon(
      ggplot2::aes(x = .data$x, ymin = .data$lower, ymax = .data$upper, group = .data$piece), data = table,
      inherit.aes = FALSE, fill = mode_colour, alpha = 0.25
    ),
    ggplot2::geom_line(
      ggplot2::aes(x = .data$x, y = .data$estimate, group = .data$piece), data = table, inherit.aes = FALSE,
      colour = "white", linewidth = 1.8
    ),
    ggplot2::geom_line(line, data = table, inherit.aes = FALSE, colour = mode_colour, linewidth = 0.8)
  )
}

group_panels <- function(x) {
  if (is.null(x$by)) return(NULL)
  ggplot2::facet_wrap(~group, labeller = ggplot2::as_labeller(function(level) paste(x$by, "=", level)))
}

axis_scales <- function(axes) {
  scale <- function(axis, make) {
    make(axis$title, breaks = axis$at, labels = axis$labels, limits = axis$range, expand = c(0, 0), oob = function(v, ...) v)
  }
  list(scale(axes[[1L]], ggplot2::scale_x_continuous), scale(axes[[2L]], ggplot2::scale_y_continuous))
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.dp_surface <- function(object, columns = NULL, level = 0.95, ...) {
  autoplot_surface(object, columns, level) + ggplot2::ggtitle(picture_title(object))
}

autoplot_surface <- function(x, columns, level) {
  columns <- if (is.null(columns)) terms_of(x) else columns
  if (!length(columns) %in% 1:2) abort("InvalidArgument", "autoplot() takes one or two coordinates; name them in columns")
  grid <- surface_grid(x, if (length(columns) == 1L) 601 else 161, columns)
  axes <- lapply(columns, function(name) axis_of(x, name))
  scale_x <- ggplot2::scale_x_continuous(axes[[1L]]$title, breaks = axes[[1L]]$at, labels = axes[[1L]]$labels, expand = c(0, 0))
  if (length(columns) == 1L) return(curve_layers(grid, columns, level) + scale_x)
  ggplot2::ggplot(raster_table(grid), ggplot2::aes(x = .data$x, y = .data$y)) +
    ggplot2::geom_raster(ggplot2::aes(fill = .data$density), interpolate = TRUE) +
    ggplot2::scale_fill_gradientn("density", colours = surface_palette(14L)) +
    scale_x +
    ggplot2::scale_y_continuous(axes[[2L]]$title, breaks = axes[[2L]]$at, labels = axes[[2L]]$labels, expand = c(0, 0)) +
    ggplot2::theme_bw() + ggplot2::theme(panel.grid = ggplot2::element_blank())
}

curve_layers <- function(grid, name, level) {
  noise <- stats::qnorm((1 + level) / 2) * grid$noise_sd
  table <- data.frame(x = grid$axes[[1L]], density = as.vector(grid$density))
  ggplot2::ggplot(table, ggplot2::aes(x = .data$x, y = .data$density)) +
    ggplot2::geom_ribbon(
      ggplot2::aes(ymin = .data$density - noise, ymax = .data$density + noise), fill = curve_colour, alpha = 0.25
    ) +
    ggplot2::geom_line(colour = curve_colour) +
    ggplot2::ylab(paste("density of", name)) + ggplot2::theme_bw()
}

mode_lines <- function(x, name) {
  e <- x$estimates[x$estimates$term == name, ]
  list(
    ggplot2::geom_rect(
      ggplot2::aes(xmin = .data$lower, xmax = .data$upper, ymin = -Inf, ymax = Inf), data = e, inherit.aes = FALSE,
      fill = mode_colour, alpha = 0.15
    ),
    ggplot2::geom_vline(
      ggplot2::aes(xintercept = .data$estimate), data = e, colour = mode_colour,
      linetype = ifelse(is_solid(e), "solid", "dashed")
    )
  )
}

mode_rings <- function(x, columns, level) {
  at <- mode_centres(x)[, columns, drop = FALSE]
  first <- x$estimates[x$estimates$term == columns[[1L]], ]
  rings <- do.call(rbind, lapply(seq_len(nrow(at)), function(k) {
    ring <- ellipse(at[k, ], mode_covariance(x, k, columns), level)
    data.frame(x = ring[, 1L], y = ring[, 2L], mode = rep(k, nrow(ring)))
  }))
  points <- data.frame(x = at[, 1L], y = at[, 2L], mode = first$mode)
  # Labels stay inside of the axes.
  near_end <- function(name) {
    range <- axis_of(x, name)$range
    at[, name] > range[[2L]] - 0.06 * diff(range)
  }
  points$hjust <- ifelse(near_end(columns[[1L]]), 1.9, -0.9)
  points$vjust <- ifelse(near_end(columns[[2L]]), 1.6, -0.6)
  list(
    ggplot2::geom_path(ggplot2::aes(group = .data$mode), data = rings, colour = mode_colour),
    ggplot2::geom_point(data = points, shape = 21L, colour = mode_colour, fill = ifelse(is_solid(first), mode_colour, "white")),
    ggplot2::geom_text(
      ggplot2::aes(label = .data$mode, hjust = .data$hjust, vjust = .data$vjust), data = points, colour = mode_colour,
      fontface = "bold"
    )
  )
}
