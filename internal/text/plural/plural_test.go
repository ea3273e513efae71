package plural

import "testing"

func TestOf(t *testing.T) {
	for _, c := range []struct {
		n          int
		noun, want string
	}{
		{0, "test", "0 tests"},
		{1, "test", "1 test"},
		{2, "test", "2 tests"},
		{2, "branch", "2 branches"},
		{2, "process", "2 processes"},
		{2, "secondary", "2 secondaries"},
		{1, "secondary", "1 secondary"},
		{2, "key", "2 keys"},
		{2, "new failure", "2 new failures"},
	} {
		if got := Of(c.n, c.noun); got != c.want {
			t.Errorf("%d of %q: %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}
