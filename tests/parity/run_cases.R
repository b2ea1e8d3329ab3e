# Run the parity cases in R: the same file under reticulate (Rscript run_cases.R cases.json out.json) and inside Python
# (source() it, then run_cases(file)). Returns the numbers of each case as hexadecimal floats.

make_table <- function(data) {
  design <- function(seed) dpmode::dp_data("four_gaussians", n = data$n, seed = seed)
  switch(data$name,
    wages = dpmode::dp_data("wages"),
    "with persons" = {
      table <- design(data$seed)
      number <- seq_len(nrow(table)) - 1
      cbind(table, id = paste0("p", number %% 450), w = 0.5 + (number %% 4) / 2, group = ifelse(number %% 2 == 1, "odd", "even"))
    },
    "four columns" = {
      one <- design(data$seed)
      two <- design(data$seed + 1)
      data.frame(a = one$x, b = one$y, c = two$x, d = two$y)
    },
    dpmode::dp_data(data$name, n = data$n, seed = data$seed)
  )
}

make_formula <- function(columns, log) {
  stats::as.formula(paste("~", paste(ifelse(columns %in% log, paste0("log(", columns, ")"), columns), collapse = " + ")))
}

# Python writes the mantissa in full: 0x1.8000000000000p+1 where R writes 0x1.8p+1.
hexadecimal <- function(x) {
  text <- sprintf("%a", as.double(x))
  whole <- regmatches(text, regexec("^(-?0x[01])(?:[.]([0-9a-f]*))?(p[+-][0-9]+)$", text, perl = TRUE))
  vapply(seq_along(text), function(i) {
    part <- whole[[i]]
    if (length(part) == 0L) return("nan")
    if (x[[i]] == 0) return(if (startsWith(text[[i]], "-")) "-0x0.0p+0" else "0x0.0p+0")
    paste0(part[[2L]], ".", formatC(part[[3L]], width = -13L, flag = "-"), part[[4L]]) |> gsub(pattern = " ", replacement = "0")
  }, "")
}

# Name in the table -> how the model is fitted, and which of its numbers are compared.
families <- list(
  modes = list(
    fit = function(case, given, options) {
      formula <- make_formula(unlist(case$columns), unlist(options$log))
      options$log <- NULL
      if (!is.null(options$grams)) options$grams <- do.call(dpmode::grams_options, options$grams)
      do.call(dpmode::dp_modes, c(list(formula), given, options))
    },
    numbers = function(fit) {
      t <- dpmode::tidy(fit)
      interval <- stats::confint(fit, level = 0.9)
      list(
        estimate = as.vector(t(stats::coef(fit))), std_error_privacy = t$std.error.privacy,
        std_error_sampling = t$std.error.sampling, std_error_bias = t$std.error.bias, std_error_total = t$std.error,
        lower = interval[, 1L], upper = interval[, 2L], share = t$proportion[!duplicated(t$component)]
      )
    }
  ),
  regression = list(
    fit = function(case, given, options) {
      if (!is.null(options$levels)) options$levels <- unlist(options$levels)
      do.call(dpmode::dp_modal_regression, c(list(stats::as.formula(case$formula)), given, options))
    },
    numbers = function(fit) {
      b <- stats::coef(fit)
      interval <- stats::confint(fit, level = 0.9)
      c(
        as.list(b[c("branch", "estimate", "std_error", "privacy", "sampling", "share", "snr", "certified")]),
        list(lower = interval[, 1L], upper = interval[, 2L], mass = fit$mass$mass)
      )
    }
  ),
  clusters = list(
    fit = function(case, given, options) {
      names(options)[names(options) == "n_clusters"] <- "k"
      do.call(dpmode::dp_modal_clusters, c(list(make_formula(unlist(case$columns), NULL)), given, options))
    },
    numbers = function(fit) {
      t <- dpmode::tidy(fit)
      interval <- stats::confint(fit, level = 0.9)
      one <- !duplicated(t$component)
      list(
        estimate = as.vector(t(stats::coef(fit))), std_error_privacy = t$std.error.privacy,
        std_error_sampling = t$std.error.sampling, std_error_total = t$std.error, lower = interval[, 1L],
        upper = interval[, 2L], share = t$proportion[one], share_se = t$std.error.proportion[one],
        found_again = t$found.again[one], significance = t$statistic[one]
      )
    }
  ),
  scale = list(
    fit = function(case, given, options) {
      formula <- make_formula(unlist(case$columns), unlist(options$log))
      options$log <- NULL
      do.call(dpmode::dp_scale, c(list(formula), given, options))
    },
    numbers = function(fit) {
      e <- as.data.frame(fit)
      list(
        estimate = as.vector(t(stats::coef(fit))), std_error = dpmode::tidy(fit)$std.error,
        quartiles = as.vector(t(e[c("lower_quartile", "median", "upper_quartile")]))
      )
    }
  ),
  components = list(
    fit = function(case, given, options) {
      do.call(dpmode::dp_pca, c(list(make_formula(unlist(case$columns), NULL)), given, options))
    },
    numbers = function(fit) {
      t <- dpmode::tidy(fit)
      list(
        estimate = as.vector(t(stats::coef(fit))), variance = t$variance, proportion = t$proportion,
        std_error = t$std.error, angle = t$angle, location = fit$location, radius = dpmode::glance(fit)$radius
      )
    }
  ),
  pipeline = list(
    fit = function(case, given, options) {
      names(options)[names(options) == "n_clusters"] <- "k"
      do.call(dpmode::dp_pca_clusters, c(list(make_formula(unlist(case$columns), NULL)), given, options))
    },
    numbers = function(fit) {
      t <- dpmode::tidy(fit)
      centres <- as.data.frame(unclass(stats::coef(fit)))
      list(
        estimate = as.vector(t(stats::coef(fit))), std_error = t$std.error, share = t$proportion[!duplicated(t$component)],
        loadings = as.vector(t(stats::coef(fit$components))),
        scores = as.vector(t(stats::predict(fit, centres, type = "scores"))), labels = stats::predict(fit, centres)
      )
    }
  )
)

# What every family has; several releases have no noise of their own.
shared_numbers <- function(fit) {
  p <- dpmode::privacy(fit)
  if (is.null(p$releases)) return(list(nobs = stats::nobs(fit), noise_sd = fit$noise_sd, noise_scale = p$noise_scale))
  list(
    nobs = stats::nobs(fit), epsilon = p$epsilon, epsilons = p$releases$epsilon, noise_scales = p$releases$noise_scale
  )
}

numbers_of <- function(case) {
  family <- families[[case$model]]
  data <- make_table(case$data)
  options <- case$options
  if (is.list(options$bandwidth)) options$bandwidth <- unlist(options$bandwidth)
  bounds <- lapply(case$bounds, as.double)
  if (!is.null(case$private)) {
    budget <- dpmode::dp_budget(case$epsilon, case$delta)
    data <- do.call(dpmode::private_data, c(list(data, bounds = bounds, budget = budget), case$private))
    bounds <- NULL
  }
  given <- list(data = data, bounds = bounds, epsilon = case$epsilon, delta = case$delta, seed = case$seed)
  fit <- family$fit(case, given, options)
  found <- c(family$numbers(fit), shared_numbers(fit))
  lapply(found, hexadecimal)
}

run_cases <- function(file) {
  cases <- jsonlite::fromJSON(file, simplifyVector = TRUE, simplifyDataFrame = FALSE)
  out <- lapply(cases, function(case) suppressWarnings(numbers_of(case)))
  stats::setNames(out, vapply(cases, `[[`, "", "name"))
}

if (!interactive() && identical(Sys.getenv("DPMODE_PARITY_OUT", "") != "", TRUE)) {
  files <- commandArgs(trailingOnly = TRUE)
  jsonlite::write_json(run_cases(files[[1L]]), Sys.getenv("DPMODE_PARITY_OUT"), auto_unbox = FALSE)
}
