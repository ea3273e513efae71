package ledger

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/secret"
)

// Kind says what sort of thing an entry is.
type Kind string

// The kinds, in the order in which leftovers are removed.
const (
	Cluster      Kind = "cluster" // of an orchestration service
	ChildProcess Kind = "process" // such as a mongod
	Folder       Kind = "folder"  // a temporary one
	Lock         Kind = "lock"    // the lock document in a deployment that is not ours, on which fail points may be, too
)

var kinds = []Kind{Cluster, ChildProcess, Folder, Lock}

func (k Kind) rank() int { return slices.Index(kinds, k) }

// Entry is one thing outside a run. Which fields count depends on the kind.
type Entry struct {
	Kind Kind `json:"kind"`

	// URL of an orchestration service, with the version of its interface but
	// without credentials; Resource is servers, replica_sets or
	// sharded_clusters, and ID that of the cluster.
	URL      string `json:"url,omitempty"`
	Resource string `json:"resource,omitempty"`
	ID       string `json:"id,omitempty"`
	// Making reports whether the service was asked to make the cluster and has not
	// answered yet: it can turn up later.
	Making bool `json:"making,omitempty"`

	// Process is a child process; Add looks up when it started. Command is shown
	// to people: leave out arguments that hold secrets.
	Process Process `json:"process,omitzero"`
	Command string  `json:"command,omitempty"`

	// Path of a temporary folder: absolute, and its last part begins with
	// "utr-", so that nothing else is ever removed.
	Path string `json:"path,omitempty"`

	// URI is the connection string, without credentials, of the deployment
	// that a lock document is in, and Name is its namespace.
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
}

// FolderPrefix begins the name of every temporary folder that is remembered.
const FolderPrefix = "utr-"

// String says what the entry is, for people.
func (e Entry) String() string {
	switch e.Kind {
	case Cluster:
		return fmt.Sprintf("cluster %s of %s (%s)", e.ID, e.URL, e.Resource)
	case ChildProcess:
		return fmt.Sprintf("process %d (%s)", e.Process.PID, e.Command)
	case Folder:
		return "folder " + e.Path
	case Lock:
		return fmt.Sprintf("lock document in %s of %s", e.Name, e.URI)
	default:
		return "entry of kind " + string(e.Kind)
	}
}

// check refuses what could not be removed, and what must not be written.
func (e Entry) check() error {
	need := map[string]string{}
	switch e.Kind {
	case Cluster:
		need = map[string]string{"url": e.URL, "resource": e.Resource, "id": e.ID}
	case ChildProcess:
		need = map[string]string{"command": e.Command, "start time": e.Process.Started}
		if e.Process.PID <= 1 {
			return fmt.Errorf("%d is not the id of a child process", e.Process.PID)
		}
	case Folder:
		if !filepath.IsAbs(e.Path) || filepath.Clean(e.Path) != e.Path || !strings.HasPrefix(filepath.Base(e.Path), FolderPrefix) {
			return fmt.Errorf("%q cannot be a folder of ours: it must be absolute, and its name must begin with %s", e.Path, FolderPrefix)
		}
	case Lock:
		need = map[string]string{"uri": e.URI, "name": e.Name}
	default:
		return fmt.Errorf("there is no kind %q", e.Kind)
	}
	for what, value := range need {
		if value == "" {
			return fmt.Errorf("an entry of kind %s needs its %s", e.Kind, what)
		}
	}
	for _, text := range []string{e.URL, e.URI, e.Command} {
		if secret.Hide(text) != text {
			return errors.New("an entry holds credentials")
		}
	}
	return nil
}
