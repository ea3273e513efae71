package ledger

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// MakeFolder makes a temporary folder, which is remembered before it is there.
// Its name tells the purpose; parent is where, "" for the system's place. Call
// forget when it is gone, or when somebody wants to keep it.
func (l *Ledger) MakeFolder(parent, purpose string) (folder string, forget func() error, err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	if parent, err = filepath.Abs(parent); err != nil {
		return "", nil, err
	}
	folder = filepath.Join(parent, FolderPrefix+purpose+"-"+strings.ToLower(rand.Text()[:10]))
	if forget, err = l.Add(Entry{Kind: Folder, Path: folder}); err != nil {
		return "", nil, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", nil, errors.Join(fmt.Errorf("a temporary folder: %w", err), forget())
	}
	return folder, forget, nil
}
