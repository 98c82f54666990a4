"""From a file of a bug report to where it fails, how, and what decides.

look_worker, recording          run inside a frontend's environment: kernels of the file, and launches
look, notation, signatures      what they say, what the reader says, parameters as the lab's
usage                           what the text of a kernel shows of its parameters
sources, extract, lift          kernels made to stand alone (names, source, strangers: what that takes)
sweep, variants                 which questions, in which order, within a budget
asked, contrasts, findings      answers, along which axes they change, and what they mean (pure)
gaps                            what was not asked, and so whether all is well
show, data, next_steps          as table and paragraph; as JSON; as a matrix and commands to go on with
"""
