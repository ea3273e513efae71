package cli

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/specs"
)

// checkURI checks a connection string from a flag or a variable, and warns of its options.
func (c *invocation) checkURI(at, uri string) error {
	if err := deployment.CheckURI(uri); err != nil {
		return usage("%s: %w", at, err)
	}
	c.warnOfOptions(at, deployment.OptionsOf(uri))
	return nil
}

// warnOfOptions warns of options that drivers ignore, and of repeated ones (Connection String, "Keys" and "Repeated
// Keys").
func (c *invocation) warnOfOptions(at string, options []deployment.URIOption) {
	last, count := map[string]deployment.URIOption{}, map[string]int{}
	for _, o := range options {
		name := strings.ToLower(o.Name)
		last[name] = o
		count[name]++
	}
	for _, o := range options {
		name := strings.ToLower(o.Name)
		if count[name] > 1 && !o.List() {
			c.note(fmt.Sprintf("warning: %s has %s several times; the last one applies: %s", at, o.Name, last[name]))
		}
		if count[name] > 0 && !specs.IsURIOption(o.Name) && !o.Known() {
			c.note(fmt.Sprintf("warning: %s has the unknown option %s, which drivers ignore%s", at, o.Name,
				suggest.Hint(o.Name, specs.URIOptions())))
		}
		count[name] = 0
	}
}
