package shared

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPath(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"checkout/below/it", "shared/specifications/crud"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "checkout", "go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(top, "checkout", "below", "it"))
	for _, row := range []struct {
		reason   string
		elements []string
		skips    bool
	}{
		{"a folder that is there", []string{"specifications", "crud"}, false},
		{"all of it", nil, false},
		{"a folder that is not there", []string{"specifications", "sdam"}, true},
	} {
		skipped := true
		t.Run(row.reason, func(t *testing.T) {
			path := Path(t, row.elements...)
			skipped = false
			if want := filepath.Join(append([]string{top, "shared"}, row.elements...)...); path != want {
				t.Errorf("%s, want %s", path, want)
			}
		})
		if skipped != row.skips {
			t.Errorf("%s: skipped %t", row.reason, skipped)
		}
	}
}
