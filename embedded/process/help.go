package process

import (
	"fmt"
	"strings"
)

// HelpText is what --help prints: the options, those that do nothing here among
// them.
func (o *Options) HelpText() string {
	p := program{"mongod", onMongod}
	if o.Mongos {
		p = program{"mongos", onMongos}
	}
	var s strings.Builder
	fmt.Fprintf(&s, "usage: %s [OPTIONS]\n\nutr plays %s of MongoDB %s, with data in memory. Options:\n", p.name, p.name, o.Profile.Text())
	for i := range optionTable {
		row := &optionTable[i]
		if row.where&p.where == 0 {
			continue
		}
		name := "--" + row.name
		if row.short != "" {
			name = "-" + row.short + ", " + name
		}
		switch row.kind {
		case toggle:
		case pairs:
			name += " NAME=VALUE"
		default:
			name += " arg"
		}
		fmt.Fprintf(&s, "  %s\n", name)
	}
	return strings.TrimSuffix(s.String(), "\n")
}
