package testkit

import (
	"errors"
	"testing"
)

func (f *fake) Errorf(string, ...any) { f.failed = true }

func TestChecks(t *testing.T) {
	wrong := errors.New("the disk is full")
	for _, r := range []struct {
		reason string
		test   func(*fake)
		failed bool
	}{
		{"no error", func(f *fake) { Check(f, nil) }, false},
		{"an error", func(f *fake) { Check(f, wrong) }, true},
		{"equal lists", func(f *fake) { Equal(f, "", []int{1}, []int{1}) }, false},
		{"unequal lists", func(f *fake) { Equal(f, "", []int{1}, []int{2}) }, true},
		{"all parts", func(f *fake) { Fails(f, wrong, "disk", "full") }, false},
		{"a part is missing", func(f *fake) { Fails(f, wrong, "disk", "empty") }, true},
		{"no error where one is expected", func(f *fake) { Fails(f, nil) }, true},
		{"a password", func(f *fake) { Says(f, "it is "+Secret) }, true},
	} {
		f := &fake{TB: t}
		f.run(r.test)
		if f.failed != r.failed {
			t.Errorf("%s: failed %v", r.reason, f.failed)
		}
	}
}
