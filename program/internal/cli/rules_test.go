package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire/failpoints"
)

// failPointTables shows what the rules fail-point, fail-point-data and command-name know.
func failPointTables() string {
	var b strings.Builder
	b.WriteString(`
## Fail points

The rules fail-point and fail-point-data know these fail points and the keys of their data. A version is the first one
of mongod that has the fail point, or reads the key. A key without a version is as old as its fail point. Servers have
many more fail points. A test that sets one of them gets a warning, since a server without it refuses to set it.

| fail point | since | what it does |
|---|---|---|
`)
	for _, name := range failpoints.PointNames() {
		p, _ := failpoints.PointNamed(name)
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.Name, p.Since, p.Doc)
	}
	b.WriteString("\n| fail point | key of its data | type | since | what it does |\n|---|---|---|---|---|\n")
	keys := func(name string, fields []failpoints.Field) {
		for _, f := range fields {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, f.Name, f.Type, f.Since, f.Doc)
		}
	}
	for _, name := range failpoints.PointNames() {
		p, _ := failpoints.PointNamed(name)
		keys(p.Name, p.Fields)
	}
	keys("an element of sequence", failpoints.Element())
	b.WriteString(`
A mode is ` + "`off`, `alwaysOn`, `{times: n}`, `{skip: n}` or `{activationProbability: p}`" + `, where n is an integer from 0
to 2147483647 and p is a number from 0 to 1. Names and modes are case-sensitive.

## Commands

The rules fail-point-data and command-name know the commands of all versions that drivers support, and some earlier
ones. These versions do not have all of them:

| versions | commands |
|---|---|
`)
	byVersions := map[string][]string{}
	for _, name := range failpoints.CommandNames() {
		c, _ := failpoints.CommandNamed(name)
		if c.Since != "" || c.Until != "" {
			versions := strings.TrimSpace(testkit.Either(c.Since != "", "since "+c.Since, "") +
				testkit.Either(c.Until != "", " up to "+c.Until, ""))
			byVersions[versions] = append(byVersions[versions], name)
		}
	}
	for _, versions := range slices.Sorted(maps.Keys(byVersions)) {
		fmt.Fprintf(&b, "| %s | %s |\n", versions, strings.Join(byVersions[versions], ", "))
	}
	return b.String()
}
