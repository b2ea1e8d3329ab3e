# What R sends to Python in place of a formula.

text_of <- function(formula) dpmode:::formula_text(formula)

# R's names are in the encoding of the session.
euro <- as.name(if (l10n_info()$`UTF-8`) "wage \u20ac" else "wage $")

test_that("a formula is written as Python reads it", {
  expect_identical(text_of(log(wage) ~ age + I(hours^2 / 10L)), "log(wage) ~ age + I(hours**2/10)")
  expect_identical(text_of(y ~ I((a + b) * -c - (d - 2))), "y ~ I((a + b) * -c - (d - 2))")
  expect_identical(text_of(I(2^-x^2) ~ sqrt(abs(z))), "I(2**-x**2) ~ sqrt(abs(z))")
  expect_identical(text_of(eval(bquote(y ~ I(x / 0.1) + I(x * .(0.1 + 0.2))))), "y ~ I(x/0.1) + I(x * 0.30000000000000004)")
  expect_identical(text_of(y ~ x:z + a * b + poly(x, degree = 2)), "y ~ x:z + a * b + poly(x, degree = 2)")
  expect_identical(text_of(y ~ . - 1), "y ~ . - 1")
  expect_identical(text_of(y ~ x[, 1]), "y ~ x[, 1]")
  # Built without brackets, as substitute() does.
  sum <- quote(a + b)
  expect_identical(text_of(eval(bquote(y ~ I(.(sum) * 2 - .(sum))))), "y ~ I((a + b) * 2 - (a + b))")
  power <- quote(a^2)
  expect_identical(text_of(eval(bquote(y ~ I(.(power)^2 + 1)))), "y ~ I((a**2)**2 + 1)")
})

test_that("names that Python would not read stand between back quotes, and no others", {
  expect_identical(text_of(lab.value ~ .x + x.1), "`lab.value` ~ `.x` + `x.1`")
  expect_identical(text_of(log(my.long.name + 2) ~ I(a.b / c)), "log(`my.long.name` + 2) ~ I(`a.b`/c)")
  expect_identical(text_of(eval(bquote(.(euro) ~ `Age (years)`))), paste0("`", euro, "` ~ `Age (years)`"))
  expect_identical(text_of(log(`a^b ~ c`) ~ I(lambda / 2)), "log(`a^b ~ c`) ~ I(`lambda`/2)")
  expect_identical(text_of(`log` ~ age_2), "log ~ age_2")
  expect_error(text_of(`a\`b` ~ x), "back quote", class = "dpmode_FormulaError")
})

test_that("columns of any name can be regressed", {
  need_python()
  set.seed(1)
  table <- data.frame(age = runif(1200, 20, 60), sex.code = rep(c("u", "v"), 600))
  table$lab.value <- table$age / 10 + rnorm(1200, 0, 0.5)
  table$`Age (years)` <- table$age
  table[[as.character(euro)]] <- exp(table$lab.value / 3)
  table$.x <- table$x.1 <- table$age
  bounds <- list(age = c(20, 60), lab.value = c(-1, 9), `Age (years)` = c(20, 60), .x = c(20, 60), x.1 = c(20, 60))
  bounds[[as.character(euro)]] <- c(0.5, 30)
  fit <- function(formula, ...) {
    dp_modal_regression(formula, table, bounds[all.vars(formula)], 2, 1e-5, seed = 1, ...)
  }
  plain <- fit(lab.value ~ age, by = "sex.code", levels = c("u", "v"))
  expect_identical(plain$response, "lab.value")
  expect_identical(plain$formula_text, "lab.value ~ age")
  expect_identical(levels(factor(predict(plain, data.frame(age = 40, sex.code = "u"))$status)), "ok")
  for (formula in list(lab.value ~ .x, log(lab.value + 2) ~ x.1, age ~ lab.value)) {
    expect_identical(text_of(stats::formula(fit(formula))), text_of(formula))
  }
  odd <- fit(eval(bquote(log(.(euro)) ~ `Age (years)`)))
  expect_identical(odd$response, paste0("log(", euro, ")"))
  found <- predict(odd, data.frame(`Age (years)` = 40, check.names = FALSE))
  expect_equal(found[[as.character(euro)]][[1L]], exp(4 / 3), tolerance = 0.1)
})
