package server

import (
	"crypto/md5" //nolint:gosec // required by SCRAM-SHA-1
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// User is a user that can authenticate with SCRAM-SHA-1 or SCRAM-SHA-256.
type User struct {
	Name, Database string
	id             bson.Binary
	roles          []role
	credentials    map[string]scram.StoredCredentials // by mechanism
}

// Users are the users of a deployment. The methods may be called concurrently.
type Users struct {
	users    sync.Map    // *User by database.name
	roles    sync.Map    // customRole by role
	nonEmpty atomic.Bool // a user exists
}

func (u *Users) find(database, name string) *User {
	user, _ := u.users.Load(database + "." + name)
	found, _ := user.(*User)
	return found
}

// key returns the _id of the user.
func (u *User) key() string { return u.Database + "." + u.Name }

// mechanisms returns the names of the mechanisms with which the user authenticates.
func (u *User) mechanisms() []string { return slices.Sorted(maps.Keys(u.credentials)) }

// mechanisms are the supported authentication mechanisms.
var mechanisms = map[string]struct {
	hash   scram.HashGeneratorFcn
	rounds int
	salt   int // bytes
	digest bool
}{
	"SCRAM-SHA-1":   {hash: scram.SHA1, rounds: 10000, salt: 16, digest: true},
	"SCRAM-SHA-256": {hash: scram.SHA256, rounds: 15000, salt: 28},
}

// Add adds a user with all privileges to a database, or changes the password. Only the SCRAM credentials are stored.
func (u *Users) Add(database, name, password string) error {
	credentials, err := credentialsOf(name, password, false, slices.Collect(maps.Keys(mechanisms)))
	if err == nil {
		u.store(&User{Name: name, Database: database, id: value.NewUUID(), roles: []role{{"root", "admin"}},
			credentials: credentials})
	}
	return err
}

func (u *Users) store(user *User) {
	u.users.Store(user.key(), user)
	u.nonEmpty.Store(true)
}

// credentialsOf returns what is stored of a password for some mechanisms. digested means that it is a digest for
// SCRAM-SHA-1.
func credentialsOf(name, password string, digested bool, of []string) (map[string]scram.StoredCredentials, error) {
	stored := map[string]scram.StoredCredentials{}
	for _, mechanism := range of {
		m, secret := mechanisms[mechanism], password
		newClient := m.hash.NewClient
		if m.digest {
			newClient = m.hash.NewClientUnprepped
		}
		if m.digest && !digested {
			secret = passwordDigest(name, password)
		}
		client, err := newClient(name, secret, "")
		if err != nil {
			return nil, err
		}
		salt := make([]byte, m.salt)
		rand.Read(salt)
		factors := scram.KeyFactors{Salt: string(salt), Iters: m.rounds}
		if stored[mechanism], err = client.GetStoredCredentialsWithError(factors); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// passwordDigest returns the password for SCRAM-SHA-1 (specification "Authentication", SCRAM-SHA-1).
func passwordDigest(name, password string) string {
	sum := md5.Sum([]byte(name + ":mongo:" + password)) //nolint:gosec // required by the protocol
	return hex.EncodeToString(sum[:])
}

type conversation struct {
	scram     *scram.ServerConversation
	user      *User
	skipEmpty bool
	proved    bool // only the empty exchange remains
}

const conversationID = 1 // a connection has at most one conversation

const minNonce = 4 // minimum length of a client nonce, in bytes

var errAuthentication = fault.Errorf(fault.AuthenticationFailed, "Authentication failed.") // for every failure

// speculative executes speculativeAuthenticate of a hello. Failures are not reported: the client then authenticates
// with saslStart.
func (x *exchange) speculative() (bson.D, error) {
	given, err := x.request.Body.LookupErr("speculativeAuthenticate")
	if err != nil {
		return nil, nil
	}
	of := "hello"
	if !x.view.Has.NewTerms {
		of = "isMaster"
	}
	doc, ok := given.DocumentOK()
	if !ok || len(doc) <= 5 {
		return nil, fault.Errorf(fault.BadValue, "%s.speculativeAuthenticate must be a non-empty Object", of)
	}
	switch name := firstKey(doc); name {
	case "authenticate":
		return nil, nil
	case "saslStart":
	default:
		return nil, fault.Errorf(51769, "%s.speculativeAuthenticate unknown command: %s", of, name)
	}
	reply, _ := x.conn.saslStart(doc, value.TextAt(doc, "db"))
	return reply, nil
}

func (k *conn) saslStart(body bson.Raw, db string) (bson.D, error) {
	k.sasl = nil
	name := value.TextAt(body, "mechanism")
	m, known := mechanisms[name]
	if !known {
		return nil, k.server.cluster.noMechanism(name)
	}
	c := &conversation{}
	server, err := m.hash.NewServer(func(user string) (scram.StoredCredentials, error) {
		if c.user = k.server.cluster.Users.find(db, user); c.user != nil {
			if credentials, ok := c.user.credentials[name]; ok {
				return credentials, nil
			}
		}
		return scram.StoredCredentials{}, errAuthentication
	})
	if err != nil {
		return nil, err
	}
	c.scram = server.NewConversation()
	c.skipEmpty = value.FlagAt(body, "options", "skipEmptyExchange")
	first, err := payload(body)
	if err != nil {
		return nil, err
	}
	_, nonce, _ := strings.Cut(first, ",r=")
	challenge, err := c.scram.Step(first)
	if err != nil || strings.HasPrefix(challenge, "e=") || len(nonce) < minNonce {
		return nil, errAuthentication
	}
	k.sasl = c
	return saslReply(challenge, false), nil
}

func (c *Cluster) noMechanism(name string) error {
	if c.Version.Has.MechanismCode {
		return fault.Errorf(fault.MechanismUnavailable, "Received authentication for mechanism %s which is not enabled", name)
	}
	return fault.Errorf(fault.BadValue, "Received authentication for mechanism %s which is unknown or not enabled", name)
}

func (x *exchange) saslContinue() (bson.D, error) {
	k := x.conn
	c := k.sasl
	if c == nil {
		return nil, fault.Errorf(fault.ProtocolError, "No SASL session state found")
	}
	k.sasl = nil // unless the conversation continues
	if value.IntAt(x.request.Body, "conversationId") != conversationID {
		return nil, fault.Errorf(fault.ProtocolError, "sasl: Mismatched conversation id")
	}
	proof := ""
	if !c.proved {
		sent, err := payload(x.request.Body)
		if err != nil {
			return nil, err
		}
		if proof, err = c.scram.Step(sent); err != nil || !c.scram.Valid() {
			return nil, errAuthentication
		}
		if c.proved = true; !c.skipEmpty {
			k.sasl = c
			return saslReply(proof, false), nil
		}
	}
	k.user = c.user
	return saslReply(proof, true), nil
}

func payload(body bson.Raw) (string, error) {
	given := body.Lookup("payload")
	if _, data, ok := given.BinaryOK(); ok {
		return string(data), nil
	}
	text, ok := given.StringValueOK()
	if !ok {
		return "", fault.Errorf(fault.BadValue, "Invalid SASLPayload type. Expected Base64 or BinData, got: %s",
			value.RawTypeName(given))
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fault.Errorf(10270, "Failed decoding SASL payload: invalid base64")
	}
	return string(data), nil
}

func saslReply(payload string, done bool) bson.D {
	return value.Doc("conversationId", int32(conversationID), "done", done, "payload", bson.Binary{Data: []byte(payload)})
}

// getnonce is left from a removed mechanism. 6.2 removed the command.
func (x *exchange) getnonce() (bson.D, error) {
	nonce := make([]byte, 8)
	rand.Read(nonce)
	return value.Doc("nonce", hex.EncodeToString(nonce)), nil
}

func (x *exchange) logout() (bson.D, error) {
	x.conn.user = nil
	return nil, nil
}

// authenticate is a command of mechanisms that are not supported here.
func (x *exchange) authenticate() (bson.D, error) {
	mechanism := value.TextAt(x.request.Body, "mechanism")
	if x.view.Has.MechanismCode { // as a server without TLS
		return nil, fault.Errorf(fault.BadValue, "Unsupported mechanism: %s", mechanism)
	}
	return nil, x.server.cluster.noMechanism(mechanism)
}

func (x *exchange) connectionStatus() (bson.D, error) {
	users, roles, privileges := bson.A{}, bson.A{}, bson.A{}
	if u := x.conn.user; u != nil {
		roles = u.rolesDocument()
		everything := value.Doc("anyResource", true)
		privileges = append(privileges, value.Doc("resource", everything, "actions", bson.A{"anyAction"}))
		users = append(users, value.Doc("user", u.Name, "db", u.Database))
	}
	info := value.Doc("authenticatedUsers", users, "authenticatedUserRoles", roles)
	given, err := x.request.Body.LookupErr("showPrivileges")
	shows := value.FromRaw(given)
	if err == nil && given.Type != bson.TypeBoolean && !value.IsNumber(shows) {
		return nil, fault.Errorf(fault.TypeMismatch, "Expected boolean or number type for field \"showPrivileges\", found %s",
			value.RawTypeName(given))
	}
	return value.Doc("authInfo", value.AddIf(info, value.Truthy(shows), "authenticatedUserPrivileges", privileges)), nil
}
