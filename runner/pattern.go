package runner

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Pattern parses a regular expression that a person wrote.
func Pattern(text string) (*regexp.Regexp, error) {
	p, err := regexp.Compile(text)
	if wrong := (*syntax.Error)(nil); errors.As(err, &wrong) {
		return nil, fmt.Errorf("%q is not a regular expression: %s: %s", text, wrong.Code, wrong.Expr)
	}
	return p, err
}
