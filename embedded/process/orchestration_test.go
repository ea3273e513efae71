package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// orchestrating is how long mongo-orchestration may take to answer: it waits for
// servers.
const orchestrating = 3 * time.Minute

// orchestra is a running mongo-orchestration whose release is ours.
type orchestra struct {
	t    *testing.T
	base string
	log  string
}

// orchestrate starts the mongo-orchestration that UTR_MONGO_ORCHESTRATION names.
func orchestrate(t *testing.T) *orchestra {
	t.Helper()
	name := os.Getenv("UTR_MONGO_ORCHESTRATION")
	if name == "" {
		t.Skip("UTR_MONGO_ORCHESTRATION names no mongo-orchestration")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(limit(t), utr(t), "release", filepath.Join(dir, "release")).CombinedOutput(); err != nil {
		t.Fatalf("release: %v: %s", err, out)
	}
	configuration, err := json.Marshal(map[string]any{"releases": map[string]string{"utr": filepath.Join(dir, "release", "bin")}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, configuration, 0o600); err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(freePorts(t, 1)[0])
	command := exec.Command(name, "--config", file, "--env", "utr", "--no-fork", "--bind", "127.0.0.1", "--port", port, "start")
	command.Dir = dir
	command.Env = append(os.Environ(), "MONGO_ORCHESTRATION_HOME="+dir, "MONGO_ORCHESTRATION_TMP="+filepath.Join(dir, "tmp"), "TMPDIR="+dir)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it ends its servers, too
		_ = command.Wait()
	})
	o := &orchestra{t: t, base: "http://127.0.0.1:" + port + "/v1/", log: filepath.Join(dir, "server.log")}
	eventually(t, "mongo-orchestration", func() bool {
		nc, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = nc.Close()
		}
		return err == nil
	})
	return o
}

// call asks and gives the answer, which has to be good.
func (o *orchestra) call(method, path string, body any) map[string]any {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), orchestrating)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		o.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, method, o.base+path, bytes.NewReader(text))
	if err != nil {
		o.t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		o.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		log, _ := os.ReadFile(o.log)
		o.t.Fatalf("%s %s: %s %v: %s\n%s", method, path, response.Status, err, answer, log[max(0, len(log)-3000):])
	}
	var out map[string]any
	if len(answer) > 0 && answer[0] == '{' {
		if err := json.Unmarshal(answer, &out); err != nil {
			o.t.Fatalf("%s %s: %v: %s", method, path, err, answer)
		}
	}
	return out
}

// body is a JSON document.
type body = map[string]any

// writes says that a client can write, and read what it wrote.
func writes(t *testing.T, uri string) {
	t.Helper()
	c := client(t, uri)
	one := bson.D{e("_id", bson.NewObjectID())}
	coll := c.Database("db").Collection("c")
	if _, err := coll.InsertOne(limit(t), one); err != nil {
		t.Errorf("%s: %v", uri, err)
	}
	if err := coll.FindOne(limit(t), one).Err(); err != nil {
		t.Errorf("%s: %v", uri, err)
	}
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// The real mongo-orchestration creates, uses and deletes all kinds with our
// release, without and with users.
func TestMongoOrchestration(t *testing.T) {
	o := orchestrate(t)
	for _, row := range []struct {
		reason string
		user   body
	}{{"open", body{}}, {"with users", body{"login": "ann", "password": "secret", "auth_key": "key"}}} {
		with := func(b body) body {
			for k, v := range row.user {
				b[k] = v
			}
			return b
		}
		check := func(created map[string]any) {
			t.Helper()
			if len(row.user) == 0 {
				writes(t, text(created, "mongodb_uri"))
				return
			}
			writes(t, text(created, "mongodb_auth_uri"))
			open := client(t, text(created, "mongodb_uri"))
			if _, err := open.Database("db").Collection("c").InsertOne(limit(t), bson.D{}); err == nil {
				t.Errorf("%s: a stranger writes", text(created, "mongodb_uri"))
			}
		}
		t.Run(row.reason, func(t *testing.T) {
			ports := freePorts(t, 12)
			port := func() body { p := ports[0]; ports = ports[1:]; return body{"port": p} }
			all := fmt.Sprint(ports)

			single := o.call("POST", "servers", with(body{"name": "mongod", "procParams": port()}))
			check(single)
			for _, action := range []string{"stop", "start", "restart", "reset"} {
				o.call("POST", "servers/"+text(single, "id"), body{"action": action})
			}
			check(single)
			o.call("DELETE", "servers/"+text(single, "id"), nil)

			set := o.call("POST", "replica_sets", with(body{"id": "repl0", "members": []any{
				body{"procParams": port(), "rsParams": body{"priority": 99, "tags": body{"dc": "ny"}}},
				body{"procParams": port(), "rsParams": body{"priority": 1.1}},
				body{"procParams": port(), "rsParams": body{"arbiterOnly": true}},
			}}))
			check(set)
			if primary := o.call("GET", "replica_sets/repl0/primary", nil); primary["_id"] != 0.0 {
				t.Errorf("the primary is not the member of the highest priority: %v", primary)
			}
			if row.reason == "open" { // mongo-orchestration makes members that it adds without its own key
				added := o.call("POST", "replica_sets/repl0/members", body{"procParams": port(), "rsParams": body{"priority": 0, "hidden": true}})
				check(set)
				hidden := o.call("GET", "replica_sets/repl0/members/"+fmt.Sprint(added["_id"]), nil)
				if state, _ := hidden["rsInfo"].(map[string]any); state["hidden"] != true {
					t.Errorf("the hidden member: %v", hidden)
				}
				o.call("DELETE", "replica_sets/repl0/members/"+fmt.Sprint(added["_id"]), nil)
				check(set)
			}
			secondary := o.call("GET", "replica_sets/repl0/members/1", nil)
			for _, action := range []string{"stop", "start", "restart"} {
				o.call("POST", "servers/"+text(secondary, "server_id"), body{"action": action})
			}
			o.call("POST", "replica_sets/repl0", body{"action": "reset"})
			check(set)
			o.call("DELETE", "replica_sets/repl0", nil)

			cluster := o.call("POST", "sharded_clusters", with(body{"id": "cluster", "configsvrs": []any{body{"members": []any{body{"procParams": port()}}}},
				"shards": []any{
					body{"id": "sh01", "shardParams": body{"members": []any{body{"procParams": port()}}}},
					body{"id": "sh02", "shardParams": body{"members": []any{body{"procParams": port()}}}},
				},
				"routers": []any{port(), port()}}))
			check(cluster)
			if list, _ := cluster["shards"].([]any); len(list) != 2 {
				t.Errorf("shards: %v", cluster["shards"])
			}
			o.call("DELETE", "sharded_clusters/cluster", nil)

			var left []string
			for _, p := range strings.Fields(strings.Trim(all, "[]")) {
				l, err := net.Listen("tcp", "127.0.0.1:"+p)
				if errors.Is(err, syscall.EADDRINUSE) {
					left = append(left, p)
				} else if err == nil {
					_ = l.Close()
				}
			}
			if len(left) > 0 {
				t.Errorf("ports %v are still taken", left)
			}
		})
	}
}

// TLS with the certificates that mongo-orchestration brings along.
func TestMongoOrchestrationTLS(t *testing.T) {
	o := orchestrate(t)
	python := filepath.Join(filepath.Dir(os.Getenv("UTR_MONGO_ORCHESTRATION")), "python")
	out, err := exec.CommandContext(limit(t), python, "-c", "import mongo_orchestration, os; print(os.path.join(os.path.dirname(mongo_orchestration.__file__), 'lib'))").Output()
	lib := strings.TrimSpace(string(out))
	if err != nil {
		t.Skipf("the certificates of mongo-orchestration are not to be found: %v", err)
	}
	// It looks for its own certificate in its home.
	if err := os.Symlink(lib, filepath.Join(filepath.Dir(o.log), "lib")); err != nil {
		t.Fatal(err)
	}
	single := o.call("POST", "servers", body{"name": "mongod", "procParams": body{"port": freePorts(t, 1)[0]}, "sslParams": body{
		"sslOnNormalPorts": true, "sslPEMKeyFile": filepath.Join(lib, "server.pem"), "sslCAFile": filepath.Join(lib, "ca.pem"), "sslWeakCertificateValidation": true}})
	writes(t, text(single, "mongodb_uri")+"/?tls=true&tlsInsecure=true")
	plain := client(t, text(single, "mongodb_uri"), func(o *options.ClientOptions) { o.SetServerSelectionTimeout(500 * time.Millisecond) })
	if err := plain.Ping(limit(t), nil); err == nil {
		t.Error("plain text is served")
	}
	o.call("DELETE", "servers/"+text(single, "id"), nil)
}
