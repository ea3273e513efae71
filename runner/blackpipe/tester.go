package blackpipe

// Tester is what ListenT requires of a test: a part of *testing.T, *testing.B and other frameworks.
type Tester interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// ListenT starts a server for a Go test, and closes it when the test ends. It ends the test if that fails.
func ListenT(t Tester, o Options) *Server {
	t.Helper()
	s, err := Listen(o)
	if err != nil {
		t.Fatalf("blackpipe: %v", err)
		return nil
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Fatalf("blackpipe: close: %v", err)
		}
	})
	return s
}
