//go:build !unix

package cli

// mostFiles returns 0: other systems have no such limit.
func mostFiles() int { return 0 }
