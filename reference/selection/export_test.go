package selection

// Suitable gives the suitable servers before the latency window is applied.
func Suitable(t Topology, p Preference, deprioritized []string, o Options) ([]Server, error) {
	return selector{topology: t, preference: p, options: o}.usable(deprioritized)
}
