package reference

import (
	"sync"

	"github.com/unified-test-runner/utr/reference/retry"
)

// tokenBucket is what a client has left for retries after overload errors,
// under a policy with a token bucket (Client Backpressure, "Token Bucket").
// All its operations share it.
type tokenBucket struct {
	mu     sync.Mutex
	tokens retry.Tokens
}

func newTokenBucket(p *retry.Policy) *tokenBucket {
	b := &tokenBucket{}
	if bucket := p.Bucket(); bucket != nil {
		b.tokens = bucket.Capacity
	}
	return b
}

// next asks the retry core. No other operation comes between the look into
// the bucket and what the decision leaves in it.
func (b *tokenBucket) next(s retry.State, in retry.Input) (retry.State, retry.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in.Tokens = b.tokens
	s, d := retry.Next(s, in)
	b.tokens = d.Tokens
	return s, d
}
