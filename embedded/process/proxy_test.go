package process

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

func TestProxied(t *testing.T) {
	v2 := func(tail string) string { return signature + tail }
	for _, row := range []struct {
		reason, in, remote, rest string
		fails                    bool
	}{
		{"no header", "abcdef", "", "abcdef", false},
		{"a line", "PROXY TCP4 1.2.3.4 5.6.7.8 1000 2000\r\nabcdef", "1.2.3.4:1000", "abcdef", false},
		{"a line of IPv6", "PROXY TCP6 ::1 ::2 1000 2000\r\nabcdef", "[::1]:1000", "abcdef", false},
		{"a line that does not know", "PROXY UNKNOWN\r\nabcdef", "", "abcdef", false},
		{"a line cut short", "PROXY TCP4 1.2.3.4\r\nabcdef", "", "", true},
		{"a line without an end", "PROXY TCP4 1.2.3.4", "", "", true},
		{"a line of the greatest length", "PROXY UNKNOWN " + strings.Repeat("1", 91) + "\r\nabc", "", "abc", false},
		{"a line that is longer", "PROXY UNKNOWN " + strings.Repeat("1", 92) + "\r\nabc", "", "", true},
		{"bytes", v2("\x21\x11\x00\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x03\xe8\x07\xd0abcdef"), "1.2.3.4:1000", "abcdef", false},
		{"bytes with more behind the addresses", v2("\x21\x11\x00\x0e\x01\x02\x03\x04\x05\x06\x07\x08\x03\xe8\x07\xd0XXabcdef"), "1.2.3.4:1000", "abcdef", false},
		{"bytes of the balancer itself", v2("\x20\x00\x00\x00abcdef"), "", "abcdef", false},
		{"bytes that are too few for their kind", v2("\x21\x11\x00\x02\x01\x02abcdef"), "", "", true},
		{"bytes cut short", v2("\x21\x11\x00\x0c\x01"), "", "", true},
		{"another signature", "\r\n\r\nelsewise\x20\x00\x00\x00abcdef", "", "", true},
		{"nothing", "", "", "", true},
	} {
		in := bufio.NewReader(strings.NewReader(row.in))
		remote, err := proxied(in)
		if (err != nil) != row.fails {
			t.Errorf("%s: %v", row.reason, err)
		}
		if err != nil {
			continue
		}
		got := ""
		if remote != nil {
			got = remote.String()
		}
		rest, _ := io.ReadAll(in)
		if got != row.remote || string(rest) != row.rest {
			t.Errorf("%s: got %q and %q", row.reason, got, rest)
		}
	}
}

func FuzzProxied(f *testing.F) {
	for _, s := range []string{"PROXY TCP4 1.2.3.4 5.6.7.8 1000 2000\r\nabc", signature + "\x21\x21\x00\x24", "PROX", "\r\n\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { _, _ = proxied(bufio.NewReader(strings.NewReader(s))) })
}
