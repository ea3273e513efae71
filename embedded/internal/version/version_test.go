package version

import (
	"reflect"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Each feature names releases that exist, and at least one version has it and another has it not. Each version is a
// release.
func TestFeatures(t *testing.T) {
	with := map[string]int{}
	for _, name := range Names() {
		v, err := Named(name)
		testkit.Check(t, err)
		if v.Wire == 0 {
			t.Errorf("%s has no wire version", name)
		}
		of := reflect.ValueOf(v.Has)
		for i := range of.NumField() {
			field := of.Type().Field(i)
			for _, release := range strings.Fields(field.Tag.Get("since") + " " + field.Tag.Get("until") + " " + field.Tag.Get("except")) {
				if wires[release] == 0 {
					t.Errorf("%s: unknown release %s", field.Name, release)
				}
			}
			if of.Field(i).Bool() {
				with[field.Name]++
			}
		}
	}
	for i := range reflect.TypeFor[Features]().NumField() {
		name := reflect.TypeFor[Features]().Field(i).Name
		if n := with[name]; n == 0 || n == len(Names()) {
			t.Errorf("%d of %d versions have %s", n, len(Names()), name)
		}
	}
}

// Wire version 0 is the latest. A range includes its first and its last release.
func TestRanges(t *testing.T) {
	testkit.Equal(t, "the features of wire version 0", Of(0), Of(wires["9.0"]))
	testkit.Equal(t, "the features of 7.1", Of(22), Of(wires["7.0"]))
	for _, r := range []struct {
		Range
		wires []int
	}{
		{Range{}, []int{0, 8, 9, 12, 13, 29}},
		{Range{Since: "4.9"}, []int{0, 12, 13, 29}},
		{Range{Until: "4.9"}, []int{8, 9, 12}},
		{Range{"4.4", "4.9"}, []int{9, 12}},
	} {
		var got []int
		for _, wire := range []int{0, 8, 9, 12, 13, 29} {
			if r.Has(wire) {
				got = append(got, wire)
			}
		}
		testkit.Equal(t, "wire versions from "+r.Since+" to "+r.Until, got, r.wires)
	}
}
