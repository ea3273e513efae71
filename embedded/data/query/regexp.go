package query

import (
	"regexp"
	"strings"

	"github.com/unified-test-runner/utr/embedded/command"
)

// compileRegexp compiles a pattern of BSON, with options, to Go's syntax.
func compileRegexp(pattern, options string) (*regexp.Regexp, error) {
	flags := ""
	for _, o := range options {
		switch o {
		case 'i', 'm', 's':
			flags += string(o)
		case 'x':
			var b strings.Builder
			for _, line := range strings.Split(pattern, "\n") {
				line, _, _ = strings.Cut(line, "#")
				b.WriteString(strings.Join(strings.Fields(line), ""))
			}
			pattern = b.String()
		case 'u', 'l':
		default:
			return nil, command.Errorf(51108, "invalid flag in regex options: %c", o)
		}
	}
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, command.Errorf(51091, "Regular expression is invalid: %v", err)
	}
	return re, nil
}
