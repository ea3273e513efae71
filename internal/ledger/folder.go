package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// TempFolder is a temporary folder that is remembered.
type TempFolder struct {
	Path string
	// Forget removes its entry, not the folder.
	Forget func() error
}

// MakeFolder makes a temporary folder, which is remembered before it is there.
// Its name says the purpose; parent is where, "" for the system's place.
func (l *Ledger) MakeFolder(parent, purpose string) (*TempFolder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(parent, FolderPrefix+purpose+"-"+strings.ToLower(rand.Text()[:10]))
	forget, err := l.Add(Entry{Kind: Folder, Path: path})
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("a temporary folder: %w", err), forget())
	}
	return &TempFolder{path, forget}, nil
}

// Close removes the folder and its entry.
func (f *TempFolder) Close(context.Context) error {
	if err := os.RemoveAll(f.Path); err != nil {
		return err
	}
	return f.Forget()
}
