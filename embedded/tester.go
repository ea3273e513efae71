package embedded

import "context"

// Tester is what StartT requires of a test: a part of *testing.T, *testing.B and other frameworks.
type Tester interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// StartT starts a deployment for a Go test, and closes it when the test ends. It ends the test if that fails.
func StartT(t Tester, options Options) *Deployment {
	t.Helper()
	d, err := Start(context.Background(), options)
	if err != nil {
		t.Fatalf("embedded: %v", err)
		return nil
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Fatalf("embedded: close: %v", err)
		}
	})
	return d
}
