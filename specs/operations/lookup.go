package operations

import (
	"cmp"
	"slices"
)

// Lookup gives the row of an operation on a kind of entity. The row must not
// be changed.
func Lookup(kind Kind, name string) (Operation, bool) {
	rows := all()
	i, found := slices.BinarySearchFunc(rows, Operation{Kind: kind, Name: name}, compare)
	if !found {
		return Operation{}, false
	}
	return rows[i], true
}

// All gives every row, sorted by kind and name. The slice is the caller's
// own, the rows must not be changed.
func All() []Operation { return slices.Clone(all()) }

// KindsWith gives the kinds that have an operation of a name.
func KindsWith(name string) []Kind {
	var kinds []Kind
	for _, row := range all() {
		if row.Name == name {
			kinds = append(kinds, row.Kind)
		}
	}
	return kinds
}

// Argument gives the argument of a name.
func (o Operation) Argument(name string) (Argument, bool) {
	i, found := slices.BinarySearchFunc(o.Arguments, name, func(a Argument, n string) int { return cmp.Compare(a.Name, n) })
	if !found {
		return Argument{}, false
	}
	return o.Arguments[i], true
}

func compare(a, b Operation) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}
