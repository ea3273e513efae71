package main

import (
	"slices"
	"strings"
)

// divide returns a file for each part of a file whose tests wait: tests of one file run one after the other, also in a
// run that plays several tests at the same time. A function returns the part of a test from the title of its operation.
func (f *file) divide(part func(title string) string) (files []*file) {
	for _, t := range f.Tests {
		of := part(strings.TrimSuffix(t.Description, " "+t.Says))
		description := f.Description + ", " + of
		i := slices.IndexFunc(files, func(one *file) bool { return one.Description == description })
		if i < 0 {
			one := *f
			one.Name, one.Description, one.Tests = f.Name+"-"+fileName(of), description, nil
			i, files = len(files), append(files, &one)
		}
		files[i].Tests = append(files[i].Tests, t)
	}
	for _, one := range files {
		unused := func(c client) bool { return !one.uses(test.uses, c.ID) }
		uncalled := func(kind string) bool { return !one.uses(test.calls, kind) }
		one.Clients = slices.DeleteFunc(slices.Clone(f.Clients), unused)
		one.Objects = slices.DeleteFunc(slices.Clone(everything), uncalled)
		one.Bucket = slices.Contains(one.Objects, "bucket")
	}
	return files
}

// operationOf and objectOf return parts for divide.
func operationOf(title string) string { return title }

func objectOf(title string) string {
	object, _, _ := strings.Cut(title, ".")
	return object
}

func (f *file) uses(by func(test, string) bool, what string) bool {
	return slices.ContainsFunc(f.Tests, func(t test) bool { return by(t, what) })
}

// calls reports whether operations have an object of a kind.
func (t test) calls(kind string) (found bool) {
	for _, o := range t.Operations {
		visit(o, func(name, value string) {
			found = found || name == "object" && (value == kind || strings.HasPrefix(value, kind+"-"))
		})
	}
	return found
}
