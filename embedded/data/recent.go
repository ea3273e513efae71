package data

import (
	"maps"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

const (
	sessionTimeout = 30 * time.Minute
	maxSessions    = 10000
)

// recentSessions are the sessions of recent commands, for $listLocalSessions.
type recentSessions struct {
	mu      sync.Mutex
	lastUse map[recentKey]time.Time
}

type recentKey struct{ server, session string }

// note records the session of a request.
func (s *recentSessions) note(req *command.Request, now time.Time) {
	if req.LSID == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lastUse) >= maxSessions {
		maps.DeleteFunc(s.lastUse, func(_ recentKey, t time.Time) bool {
			return now.Sub(t) > sessionTimeout || len(s.lastUse) >= maxSessions/2
		})
	}
	s.lastUse[recentKey{address(req), sessionKey(req.LSID)}] = now
}

// forget removes ended sessions.
func (s *recentSessions) forget(keys map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.lastUse, func(k recentKey, _ time.Time) bool { return keys[k.session] })
}

// list returns the output of $listLocalSessions on a server.
func (s *recentSessions) list(server string) []bson.D {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []bson.D
	for k, t := range s.lastUse {
		if k.server != server {
			continue
		}
		out = append(out, bson.D{
			{Key: "_id", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte(k.session)}}, {Key: "uid", Value: command.UserDigest("")}}},
			{Key: "lastUse", Value: bson.NewDateTimeFromTime(t)},
		})
	}
	return out
}
