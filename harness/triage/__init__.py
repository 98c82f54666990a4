"""From a file of a bug report to where it fails, how, and what decides.

look_worker, torch_stand_in     run inside a frontend's environment: kernels of the file, and launches
look, extract, signatures       what they say, kernels made to stand alone, parameters as the lab's
sweep                           which questions, in which order, within a budget
findings, show                  what the answers mean (pure), as table, paragraph and next commands
"""
