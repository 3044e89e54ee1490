module github.com/jenga-nlp/jenga/experiments/claims/gen

go 1.26.0
