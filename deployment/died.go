package deployment

// Mortal is implemented by deployments that know at once when a server dies:
// those whose servers are processes of ours.
type Mortal interface {
	// Dead tells how a server ended though nobody asked it to, nil while all run.
	Dead() error
}

// Died tells how a server of a deployment ended, nil if it is not known that
// one did.
func Died(d Deployment) error {
	if with, ok := d.(optionDeployment); ok {
		d = with.Deployment
	}
	if m, ok := d.(Mortal); ok {
		return m.Dead()
	}
	return nil
}
