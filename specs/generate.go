package specs

//go:generate go run ./internal/generate
