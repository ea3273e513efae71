// Package faulttest is for tests of what names.txt lists.
package faulttest

import "github.com/unified-test-runner/utr/embedded/internal/fault"

// Implemented returns the names of a kind that the embedded deployment has, sorted.
func Implemented(kind string) (list []string) {
	for _, n := range fault.Names(kind) {
		if !n.Refused {
			list = append(list, n.Name)
		}
	}
	return list
}
