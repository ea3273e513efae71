package ledger

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/secret"
)

// Kind is the type of an entry.
type Kind string

// The kinds, in the order in which leftovers are removed.
const (
	Cluster      Kind = "cluster" // of an orchestration service
	ChildProcess Kind = "process" // such as a mongod
	Folder       Kind = "folder"  // temporary
	Lock         Kind = "lock"    // the lock document of a deployment that is not ours; its fail points may be on, too
)

var kinds = []Kind{Cluster, ChildProcess, Folder, Lock}

func (k Kind) rank() int { return slices.Index(kinds, k) }

// Entry is one thing that a run creates outside itself. Which fields apply depends on the kind.
type Entry struct {
	Kind Kind `json:"kind"`

	// URL is that of an orchestration service, with the version of its API but without credentials. Resource is
	// servers, replica_sets or sharded_clusters, and ID the cluster's id.
	URL      string `json:"url,omitempty"`
	Resource string `json:"resource,omitempty"`
	ID       string `json:"id,omitempty"`
	// Making reports whether the service has been asked to create the cluster and has not answered yet: the cluster
	// can still appear.
	Making bool `json:"making,omitempty"`

	// Process is a child process; Add looks up its start time. Command is shown to people: omit arguments that
	// contain secrets.
	Process Process `json:"process,omitzero"`
	Command string  `json:"command,omitempty"`

	// Path is the absolute path of a temporary folder. Its last element begins with FolderPrefix, so that nothing
	// else is ever removed.
	Path string `json:"path,omitempty"`

	// URI is the connection string, without credentials, of the deployment with the lock document; Name is the
	// document's namespace.
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
}

// FolderPrefix begins the name of every temporary folder in the ledger.
const FolderPrefix = "utr-"

// String describes the entry for people.
func (e Entry) String() string {
	switch e.Kind {
	case Cluster:
		return fmt.Sprintf("cluster %s of %s (%s)", e.ID, e.URL, e.Resource)
	case ChildProcess:
		return fmt.Sprintf("process %d (%s)", e.Process.PID, e.Command)
	case Folder:
		return "folder " + e.Path
	default:
		return fmt.Sprintf("lock document in %s of %s", e.Name, e.URI)
	}
}

// check rejects what could not be removed later and what must not be written.
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
			return fmt.Errorf("%q is not a temporary folder of utr: it must be absolute, and its name must begin with %s", e.Path, FolderPrefix)
		}
	case Lock:
		need = map[string]string{"uri": e.URI, "name": e.Name}
	default:
		return fmt.Errorf("unknown kind %q", e.Kind)
	}
	for what, value := range need {
		if value == "" {
			return fmt.Errorf("an entry of kind %s needs its %s", e.Kind, what)
		}
	}
	for _, text := range []string{e.URL, e.URI, e.Command} {
		if secret.Redact(text) != text {
			return errors.New("the entry contains credentials")
		}
	}
	return nil
}
