package matrix

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
)

// maxCells limits the cells of a file, and of each block under include.
const maxCells = 5000

// product returns the cells of all combinations. Their position is at, or the position of the cluster if at is zero.
func (r *reader) product(axes [axisCount][]part, at source.Position) (cells []Cell) {
	combinations := [][axisCount]part{{}}
	for a, parts := range axes {
		if len(combinations)*len(parts) > maxCells {
			r.add(axes[clusters][0].at, "the matrix has more than %d cells: %s make it too large", maxCells, axisNames[a])
			return nil
		}
		var longer [][axisCount]part
		for _, c := range combinations {
			for _, p := range parts {
				c[a] = p
				longer = append(longer, c)
			}
		}
		combinations = longer
	}
	for _, c := range combinations {
		if slices.ContainsFunc(c[:], func(p part) bool { return p.invalid }) {
			continue
		}
		cell := r.cell(c)
		if !at.IsZero() {
			cell.Position = at
		}
		cells = append(cells, cell)
	}
	return cells
}

// cell combines parts. It is a problem if two of them have the same setting, except for lists.
func (r *reader) cell(parts [axisCount]part) Cell {
	cell := Cell{Position: parts[clusters].at, Paths: parts[suites].paths}
	var settings []setting
	for a, p := range parts {
		cell.parts[a] = p.name
		for _, one := range p.settings {
			i := slices.IndexFunc(settings, func(other setting) bool { return other.key.name == one.key.name })
			switch {
			case i < 0:
				settings = append(settings, one)
			case one.key.shape == list || one.key.shape == pairs:
				settings[i].values = slices.Concat(settings[i].values, one.values)
			default:
				r.add(one.at, "%s is set here and at %s, for the same cell", one.key.name, settings[i].at)
			}
		}
	}
	for _, d := range r.defaults {
		if !slices.ContainsFunc(settings, func(s setting) bool { return s.key.name == d.key.name }) {
			settings = append(settings, d)
		}
	}
	for _, one := range settings {
		for _, v := range one.values {
			if one.key.name == cellTimeout {
				cell.Timeout, _ = time.ParseDuration(v) // checked by keyed
				continue
			}
			cell.Flags = append(cell.Flags, "--"+cmp.Or(one.key.flag, one.key.name))
			if v != "" {
				cell.Flags = append(cell.Flags, v)
			}
		}
	}
	cell.Name = strings.Trim(strings.Join(cell.parts[:], "_"), "_")
	return cell
}

// exclude removes excluded cells and records the reasons. A rule must have a reason and match a cell.
func (r *reader) exclude(f *File, cells []Cell, v *source.Value) []Cell {
	out := map[string]bool{} // by the name of a cell
	for _, rule := range r.list(v, "exclude") {
		if !r.document(rule, "an exclude rule", append(singular[:], "reason")) {
			continue
		}
		reason, _ := r.text(rule.Get("reason"), "reason")
		if rule.Get("reason") == nil {
			r.add(rule.Position, "an exclude rule must have a reason")
		}
		patterns := r.patterns(rule)
		if len(patterns) == 0 {
			r.add(rule.Position, "an exclude rule must have one of %s", strings.Join(singular[:], ", "))
			continue
		}
		found := false
		for _, c := range cells {
			if !patterns.match(c) {
				continue
			}
			found = true
			if !out[c.Name] {
				out[c.Name] = true
				f.Excluded = append(f.Excluded, Excluded{c.Name, reason})
			}
		}
		if !found {
			r.unmatched(rule, len(cells) == 0)
		}
	}
	return slices.DeleteFunc(cells, func(c Cell) bool { return out[c.Name] })
}

// unmatched reports a rule that matches no cell, at each pattern that matches no part. The rule may mean a part that is
// reported as invalid.
func (r *reader) unmatched(rule *source.Value, noCells bool) {
	explained := noCells
	for a, name := range singular {
		parts, v := r.top[a], rule.Get(name)
		if v == nil {
			continue
		}
		items := []*source.Value{v}
		if v.Kind == source.Array {
			items = v.Items
		}
		for _, item := range items {
			pattern := item.String
			if _, err := path.Match(pattern, ""); err != nil {
				explained = true // patterns has reported it
				continue
			}
			matched := slices.ContainsFunc(parts, func(p part) bool { return matches(pattern, p.name) })
			switch {
			case matched:
				explained = explained || slices.ContainsFunc(parts, func(p part) bool { return p.invalid })
			case suggest.Word(pattern, partNames(parts, true)) != "":
				explained = true
			default:
				explained = true
				r.noPart(a, item, parts)
			}
		}
	}
	if !explained {
		r.add(rule.Position, "the rule matches no cell")
	}
}

// noPart reports a pattern that matches no part of an axis.
func (r *reader) noPart(a int, item *source.Value, parts []part) {
	names := partNames(parts, false)
	r.add(item.Position, "%q matches none of the %s: %s%s", item.String, axisNames[a], strings.Join(names, ", "),
		suggest.Hint(item.String, names))
}

// patterns are the patterns of a rule by axis. An axis without patterns matches everything.
type patterns map[int][]string

func (r *reader) patterns(rule *source.Value) patterns {
	p := patterns{}
	for a, name := range singular {
		v := rule.Get(name)
		if v == nil {
			continue
		}
		p[a] = r.texts(v, name)
		for _, pattern := range p[a] {
			if _, err := path.Match(pattern, ""); err != nil {
				r.add(v.Position, "%q is not a pattern: * matches any text, ? a character, [ab] one of several", pattern)
			}
		}
	}
	return p
}

func (p patterns) match(c Cell) bool {
	for a, some := range p {
		if len(some) > 0 && !slices.ContainsFunc(some, func(pattern string) bool { return matches(pattern, c.parts[a]) }) {
			return false
		}
	}
	return true
}

// matches reports whether a pattern matches a name. A malformed pattern does not.
func matches(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return matched && err == nil
}

// include returns the cells of the included blocks. A block is a small matrix; the file has the axes that
// it omits.
func (r *reader) include(v *source.Value) (cells []Cell) {
	for _, block := range r.list(v, "include") {
		if !r.document(block, "an include block", axisNames[:]) {
			continue
		}
		axes := r.top
		for a := range axisCount {
			if b := block.Get(axisNames[a]); b != nil {
				axes[a] = r.parts(a, b, append([]part{}, r.top[a]...))
			} else if len(axes[a]) == 0 {
				r.add(block.Position, "the block must have %s, because the file has none", axisNames[a])
			}
		}
		cells = append(cells, r.product(axes, block.Position)...)
	}
	return cells
}

// distinct reports cells with the same name, ignoring case because a cell is a file, and cells that are the same run.
func (r *reader) distinct(cells []Cell) {
	seen, runs := map[string]Cell{}, map[string]Cell{}
	for _, c := range cells {
		if other, exists := seen[strings.ToLower(c.Name)]; exists {
			r.add(c.Position, "the cell %s already exists: %s", c.Name, other.Position)
			continue
		}
		seen[strings.ToLower(c.Name)] = c
		run := fmt.Sprintf("%q %q", c.Flags, c.Paths)
		if other, exists := runs[run]; exists {
			r.add(c.Position, "the cells %s and %s are the same run", other.Name, c.Name)
		} else {
			runs[run] = c
		}
	}
}
