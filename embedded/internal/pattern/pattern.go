// Package pattern matches regular expressions in the syntax of PCRE, as servers do.
package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// Pattern is a regular expression. Most are matched in linear time; those with a construct that needs backtracking,
// such as a lookahead, or with the option x, by a library that backtracks.
type Pattern struct {
	linear     *regexp.Regexp
	backtracks *regexp2.Regexp
}

// limit is how long a match may backtrack. A server limits its steps.
const limit = time.Second

// Compile compiles a pattern with some of the options i, m, s, x and u. Patterns are Unicode with and without u.
func Compile(pattern, options string) (*Pattern, error) {
	flags := strings.ReplaceAll(options, "u", "")
	if strings.Trim(flags, "imsx") != "" {
		return nil, fmt.Errorf("invalid option in %q", options)
	}
	if !strings.Contains(flags, "x") {
		source := pattern
		if flags != "" {
			source = "(?" + flags + ")" + pattern
		}
		if re, err := regexp.Compile(source); err == nil {
			return &Pattern{linear: re}, nil
		}
	}
	given := regexp2.None
	for option, means := range map[string]regexp2.RegexOptions{"i": regexp2.IgnoreCase, "m": regexp2.Multiline,
		"s": regexp2.Singleline, "x": regexp2.IgnorePatternWhitespace} {
		if strings.Contains(flags, option) {
			given |= means
		}
	}
	re, err := regexp2.Compile(pattern, given)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = limit
	return &Pattern{backtracks: re}, nil
}

// Matches reports whether a text contains a match. It contains none if the limit is exceeded, as on a server.
func (p *Pattern) Matches(s string) bool {
	if p.linear != nil {
		return p.linear.MatchString(s)
	}
	ok, err := p.backtracks.MatchString(s)
	return ok && err == nil
}

// Find returns up to n matches (-1: all). A match has the positions in the text where it and each of its groups begin
// and end, -1 for a group without a match.
func (p *Pattern) Find(s string, n int) (found [][]int, _ error) {
	if p.linear != nil {
		return p.linear.FindAllStringSubmatchIndex(s, n), nil
	}
	m, err := p.backtracks.FindStringMatch(s)
	for ; m != nil && err == nil && len(found) != n; m, err = p.backtracks.FindNextMatch(m) {
		var match []int
		for _, g := range m.Groups() {
			from, size := g.ByteRange()
			if len(g.Captures) == 0 {
				from, size = -1, 0
			}
			match = append(match, from, from+size)
		}
		found = append(found, match)
	}
	if err != nil {
		return nil, errors.New("match limit exceeded")
	}
	return found, nil
}
