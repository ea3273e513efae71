package retry

import "strconv"

// Tokens is a number of tokens of the token bucket of client backpressure,
// counted in tenths: a success gives back a tenth, and sums stay exact.
type Tokens int

// Token is one token.
const Token Tokens = 10

// String gives the number, such as 999.1.
func (t Tokens) String() string {
	return strconv.FormatFloat(float64(t)/float64(Token), 'f', -1, 64)
}

// Bucket holds the constants of the token bucket that limits the retries of a
// client after overload errors (Client Backpressure, "Token Bucket"). What is
// in it belongs to the client, for as long as that is open: Input.Tokens gives
// it to a decision, and Decision.Tokens is what the decision leaves.
type Bucket struct {
	// Capacity is the most that it holds, and what it begins with.
	Capacity Tokens
	// Return is RETRY_TOKEN_RETURN_RATE, what a success puts in.
	Return Tokens
}

// Bucket gives the policy's token bucket, nil if it has none.
func (p *Policy) Bucket() *Bucket {
	if p.Overload == nil {
		return nil
	}
	return p.Overload.Bucket
}

// deposit puts tokens in, as many as there is room for.
func (st *step) deposit(n Tokens) {
	st.tokens = min(st.Policy.Bucket().Capacity, st.tokens+n)
}
